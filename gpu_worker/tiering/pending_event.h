// An event of destruction between the step after which it was due and the one
// after which it takes place. Plain state of one sequence, engine thread only.
#ifndef FARKV_GPU_WORKER_TIERING_PENDING_EVENT_H_
#define FARKV_GPU_WORKER_TIERING_PENDING_EVENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/policy/destruction_event.h"
#include "gpu_worker/tiering/node_pause.h"
#include "gpu_worker/tiering/window_queries.h"

namespace farkv {

struct KeptRows {
  // [layer * KV heads + head]: positions, ascending; as many of each.
  std::vector<std::vector<int64_t>> kept;
  int64_t num_non_finite = 0;   // rows that stayed because a number was broken
  int32_t layers_by_nodes = 0;  // whose rows memory nodes ranked
};

// The decision is that of the step after which the event was due, however late
// its rows are read: rows added since stay, and layers that are decided are not
// decided again.
struct PendingEvent {
  DestructionEvent event;
  int64_t num_tokens = 0;  // processed when it was due
  KeptRows rows;           // of the layers decided so far
  // The queries of then, kept from the first failed try on.
  std::optional<QueryRing> queries;
  int failures = 0;  // tries in a row that have decided no layer
  NodePause pause;   // until the next try
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_PENDING_EVENT_H_
