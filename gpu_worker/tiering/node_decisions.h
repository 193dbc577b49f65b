// Has memory nodes rank the rows of an event of destruction where they lie, so
// that no row crosses the wire for it (DESIGN 6 "Eviction decisions"). The
// worker ranks the rows that it has in T0 and merges, by the same functions:
// the decision is the one that it would make itself. A node that holds every
// candidate decides alone.
//
// Only where rows stay for attention, too: with --cold=pushdown, and with
// --cold=auto while that pushes down to every node that has cold rows of the
// sequence. And only for policies that rank a row by its own key and value:
// attention mass of a window would need all keys here.
// A node that refuses, is late or answers nonsense is left alone for a while,
// and the rows are read instead.
//
// Thread-compatible: the engine thread owns it, and waits.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_DECISIONS_H_
#define FARKV_GPU_WORKER_TIERING_NODE_DECISIONS_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "common/policy/eviction_call.h"
#include "gpu_worker/tiering/node_link.h"
#include "gpu_worker/tiering/node_pause.h"
#include "gpu_worker/tiering/row_reader.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/tiering_options.h"

namespace farkv {

class NodeDecisions {
 public:
  // Borrowed parts outlive it; `clock` is that of the pauses.
  NodeDecisions(const TieringOptions& options, const KvGeometry& geometry,
                std::span<const std::unique_ptr<NodeLink>> links,
                const Clock& clock);

  // Whether rows of the sequence are cold and every node that has some may be
  // asked about them now.
  bool MayDecide(const Sequence& sequence,
                 const DestructionPolicy& policy) const;

  struct Layer {
    std::vector<EvictionDecision> heads;
    bool by_nodes = false;  // one was asked: not all candidates were here
  };
  // Call while MayDecide. Waits one fetch timeout per call at most; of each
  // node's calls the first that fails is the last. `reader` is left at the
  // layer, cold rows excepted.
  absl::StatusOr<Layer> DecideLayer(const Sequence& sequence,
                                    const PendingEvent& pending, int layer,
                                    RowReader& reader);

 private:
  bool MayAsk(const Sequence& sequence, int node) const;
  // Whether the node's rows are attended to where they are at present.
  bool PushesTo(int node) const;
  EvictionCall EventOf(const Sequence& sequence, const PendingEvent& pending,
                       int layer) const;
  // The one that has all candidates of the event stored; -1: there is none.
  int NodeOfAll(const Sequence& sequence, const EvictionCall& event) const;
  absl::StatusOr<EvictionReply> RankOwn(const EvictionCall& own, int layer,
                                        RowReader& reader) const;
  absl::StatusOr<std::vector<EvictionReply>> AskNode(
      int node, const EvictionCall& call) const;
  // One call per node; those without heads are not asked.
  absl::StatusOr<std::vector<EvictionReply>> Ask(
      const std::vector<EvictionCall>& by_node);
  absl::Status Distrust(int node, const absl::Status& why);

  const TieringOptions& options_;
  const KvGeometry geometry_;
  const std::span<const std::unique_ptr<NodeLink>> links_;
  const Clock& clock_;
  ThreadPool pool_;  // a thread per node that is asked
  std::vector<NodePause> pauses_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_DECISIONS_H_
