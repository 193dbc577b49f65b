// How --cold=auto chooses between fetching a node's cold rows and leaving them
// to the node: what either costs a step, by measured rates (ALGORITHMS 12.3).
//
//   fetch = bytes / link           on its way while the worker computes
//   push  = layers * round trip + messages / link + rows / node
//
// Pure functions of plain values, and ModeChoice, which remembers the last.
#ifndef FARKV_GPU_WORKER_TIERING_COLD_MODE_H_
#define FARKV_GPU_WORKER_TIERING_COLD_MODE_H_

#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "gpu_worker/tiering/tiering_options.h"

namespace farkv {

// What one step wants of one node, all layers and sequences together.
struct ColdWork {
  int layers = 0;
  uint64_t fetch_bytes = 0;    // the cold rows, as they travel
  uint64_t attend_rows = 0;    // what the node reads: whole pages
  uint64_t message_bytes = 0;  // queries out, partial results back
  // Rows can be asked for before the layer that reads them has its queries.
  bool ahead = true;
};

// As measured; 0 where nothing is known.
struct NodeFigures {
  double link_bytes_per_second = 0;  // of rows that are fetched
  absl::Duration round_trip;         // of a message without a body
  double attend_rows_per_second = 0;
};

// Infinite where no rate is known that the cost needs, but for the node's: one
// that nobody has asked yet counts as free, so that it is asked.
struct ColdCosts {
  absl::Duration fetch;
  absl::Duration push;
};
ColdCosts CostsOf(const ColdWork& work, const NodeFigures& figures);

// What a step takes the worker without its waits for nodes.
struct OwnTimes {
  absl::Duration fetching;  // and attending to the fetched rows
  absl::Duration pushing;
  // Of the time that nodes attend, the share that the worker waits for; the
  // rest is hidden behind its own leaves.
  double visible_push = 1;
};
struct StepTimes {
  absl::Duration fetch;
  absl::Duration push;
};
StepTimes StepTimesOf(const ColdWork& work, const ColdCosts& costs,
                      const OwnTimes& own);

// `pushes`: what the last step did. The other way must save a tenth of the
// step, so that figures which waver do not make the mode waver.
bool BetterPushedDown(const StepTimes& step, bool pushes);

// Whether the other way is so close that a step of it is worth its time when
// nobody has measured it for long: at most half a step is lost.
bool WorthATry(const StepTimes& step, bool pushes);

enum class ColdReason {
  kAsked,       // --cold says so
  kMapped,      // in place; nothing beats that
  kExactness,   // the node would round otherwise than the worker
  kPaused,      // the node failed to attend of late
  kUnmeasured,  // no rate yet
  kRates,       // the cheaper one
  kTrial,       // the dearer one, which is to be measured again
};
const char* ColdReasonName(ColdReason reason);
const char* ColdModeName(ColdMode mode);

struct ColdChoice {
  ColdMode mode = ColdMode::kPrefetch;
  ColdReason reason = ColdReason::kUnmeasured;
  StepTimes step;  // as expected; zero where nothing was weighed
};

// The mode of one node from step to step. Thread-compatible.
class ModeChoice {
 public:
  // For the step that begins at `now`. A mode that was not used for long is
  // tried for two steps where that is worth it: what it is weighed by is old.
  ColdChoice Next(const ColdWork& work, const NodeFigures& figures,
                  const OwnTimes& own, absl::Time now);

 private:
  bool pushes_ = false;
  int trial_steps_ = 0;  // that are left
  absl::Time used_[2] = {absl::InfinitePast(), absl::InfinitePast()};
};

// Subtrees of the attention tree that a node merges `pages` to: as many
// partial results come back.
int CountSubtrees(std::span<const int32_t> pages);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_COLD_MODE_H_
