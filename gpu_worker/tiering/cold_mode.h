// How --cold=auto chooses between fetching a node's cold rows and leaving them
// to the node, from step to step, by what either costs
// (common/plan/cold_cost.h; ALGORITHMS 12.3).
//
// Pure functions of plain values, and ModeChoice, which remembers the last.
#ifndef FARKV_GPU_WORKER_TIERING_COLD_MODE_H_
#define FARKV_GPU_WORKER_TIERING_COLD_MODE_H_

#include "absl/time/time.h"
#include "common/plan/cold_cost.h"
#include "gpu_worker/tiering/tiering_options.h"

namespace farkv {

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

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_COLD_MODE_H_
