// How long steps take the worker itself, fetching and pushing down, for
// --cold=auto. Figures of the mode that is not in use follow those of the one
// that is, by the ratio of the two when the mode last changed: batches grow and
// shrink meanwhile. Thread-compatible.
#ifndef FARKV_GPU_WORKER_TIERING_STEP_METER_H_
#define FARKV_GPU_WORKER_TIERING_STEP_METER_H_

#include "absl/time/time.h"
#include "gpu_worker/tiering/cold_mode.h"
#include "gpu_worker/tiering/node_rates.h"

namespace farkv {

// One step in which cold rows were read one way from all nodes.
struct MeteredStep {
  bool pushes = false;
  absl::Duration took;          // all of it
  absl::Duration fetch_waits;   // of these, for rows
  absl::Duration attend_waits;  // and for nodes that attend
  absl::Duration attends_took;  // from asking to the answer, layer by layer
};

class StepMeter {
 public:
  void Note(const MeteredStep& step);
  OwnTimes Get() const;

 private:
  bool pushes_ = false;
  RecentValues own_;       // seconds, since the mode changed
  double own_before_ = 0;  // the other mode's, then; 0: unknown
  double pushing_to_fetching_ = 1;
  RecentValues visible_;  // share of attending that was waited for
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_STEP_METER_H_
