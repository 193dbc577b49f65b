// Destroying rows of one sequence (tier T3): asks its policy when an event is
// due, and clears bits in the page table's live bitmaps. DESIGN 5.4,
// ALGORITHMS 1 to 7.
//
// An event takes place after a step and counts from the next one on; all
// layers and KV heads or none. When rows that the policy must see cannot be
// read in time, the event waits for a later step, which goes on from the first
// layer that is not decided; each pause is twice the one before. After
// kMaxEventTries tries in a row that got no further the event is given up. Both
// are counted. Destruction never depends on where rows lie. Engine thread only.
#ifndef FARKV_GPU_WORKER_TIERING_DESTRUCTION_H_
#define FARKV_GPU_WORKER_TIERING_DESTRUCTION_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gpu_worker/tiering/cold_reads.h"
#include "gpu_worker/tiering/decision_log.h"
#include "gpu_worker/tiering/node_decisions.h"
#include "gpu_worker/tiering/pushdown.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "kernels/stream.h"

namespace farkv {

// INVALID_ARGUMENT naming the field, its value and the allowed range.
absl::Status CheckDestruction(const SequenceSpec& spec);

// Call once for a sequence that was opened.
void PrepareDestruction(Sequence& sequence, const KvGeometry& geometry,
                        int num_query_heads);

// Whether the policy may ever ask for the queries of positions up to `end`.
bool WantsQueries(const Sequence& sequence, int64_t end);

// What an event works with; all borrowed. The last three are null without
// nodes.
struct DestructionTools {
  const KvGeometry& geometry;
  T0Lines& lines;
  Stream& stream;
  absl::Duration layer_timeout;  // for the rows of one layer
  const Clock& clock;            // of the pauses between tries
  DecisionLog& log;
  ColdReads* reads = nullptr;
  Pushdown* pushdown = nullptr;
  NodeDecisions* nodes = nullptr;
  // Asked before each layer: the event is left pending, as far as it is
  // decided, once nobody wants it. Empty: never.
  std::function<bool()> is_moot = {};
};

inline constexpr int kMaxEventTries = 6;

// After a committed step: the event that is due or pending then, if any. Waits
// for cold rows, layer by layer, tools.layer_timeout at most for the one that
// does not come. Returns whether rows were destroyed.
bool DestroyDueRows(Sequence& sequence, const DestructionTools& tools);

// Drops the groups of a page whose rows are all destroyed, unless the page is
// on its way to its node; a page without any row is kGone.
void DropDead(Sequence& sequence, Page& page, T0Lines& lines);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_DESTRUCTION_H_
