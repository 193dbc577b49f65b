#include "gpu_worker/tiering/step_meter.h"

#include <algorithm>

namespace farkv {
namespace {

// Two steps say how the modes compare, if they are the same steps; a ratio
// beyond this came from something else.
constexpr size_t kStepsToCompare = 2;
constexpr double kMaxRatio = 4;

}  // namespace

void StepMeter::Note(const MeteredStep& step) {
  if (step.pushes != pushes_) {
    own_before_ = own_.Median();
    own_.Clear();
    pushes_ = step.pushes;
  }
  const absl::Duration own = std::max(
      step.took - step.fetch_waits - step.attend_waits, absl::Microseconds(1));
  own_.Add(absl::ToDoubleSeconds(own));
  if (own_.size() == kStepsToCompare && own_before_ > 0) {
    const double ratio = own_.Median() / own_before_;
    pushing_to_fetching_ =
        std::clamp(pushes_ ? ratio : 1 / ratio, 1 / kMaxRatio, kMaxRatio);
  }
  if (step.pushes && step.attends_took > absl::ZeroDuration()) {
    visible_.Add(std::clamp(
        absl::FDivDuration(step.attend_waits, step.attends_took), 0.0, 1.0));
  }
}

OwnTimes StepMeter::Get() const {
  const double now = own_.Median();
  OwnTimes own;
  own.fetching = absl::Seconds(pushes_ ? now / pushing_to_fetching_ : now);
  own.pushing = absl::Seconds(pushes_ ? now : now * pushing_to_fetching_);
  if (visible_.size() > 0) own.visible_push = visible_.Median();
  return own;
}

}  // namespace farkv
