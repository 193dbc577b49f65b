// Which rows of a sequence stay at an event: a policy of common/policy asked
// for every layer and KV head. Decides only; destruction.h takes the rows away.
// The same inputs give the same decision wherever the rows lie.
#ifndef FARKV_GPU_WORKER_TIERING_EVICTION_DECISION_H_
#define FARKV_GPU_WORKER_TIERING_EVICTION_DECISION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/policy/destruction_event.h"
#include "gpu_worker/tiering/pending_event.h"
#include "gpu_worker/tiering/row_reader.h"
#include "gpu_worker/tiering/sequence.h"

namespace farkv {

class NodeDecisions;

// The request's coordinate of every draw: a function of its id, so that a
// request that is repeated under its id loses the same rows again.
uint64_t RequestNumber(const std::string& request_id);

// Queries that the policy wants of the youngest tokens; 0: none.
int WindowOf(const DestructionPolicy& policy);

// Live positions of one layer and KV head below `end`, ascending.
std::vector<int64_t> LivePositionsOf(const PageTable& table, int layer,
                                     int kv_head, const KvGeometry& geometry,
                                     int64_t end);

// Decides the layers that are not decided yet and adds them to pending.rows.
// After an error that has the layers before it. `reader` is null when the
// policy needs neither keys nor values; `nodes` is null unless nodes may be
// asked: from the first layer on at which they fail, rows are read. Errors are
// those of reading rows and of the policy; CANCELLED when `is_moot`, asked
// before each layer, says so.
absl::Status DecideLayers(const Sequence& sequence, PendingEvent& pending,
                          const KvGeometry& geometry, RowReader* reader,
                          NodeDecisions* nodes,
                          const std::function<bool()>& is_moot);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_EVICTION_DECISION_H_
