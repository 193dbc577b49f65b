#include "gpu_worker/tiering/cold_mode.h"

namespace farkv {
namespace {

constexpr double kTryBelow = 1.5;
constexpr absl::Duration kOld = absl::Seconds(20);
constexpr int kTrialSteps = 2;

}  // namespace

bool WorthATry(const StepTimes& step, bool pushes) {
  return pushes ? step.fetch < step.push * kTryBelow
                : step.push < step.fetch * kTryBelow;
}

ColdChoice ModeChoice::Next(const ColdWork& work, const NodeFigures& figures,
                            const OwnTimes& own, absl::Time now) {
  const auto choose = [&](bool pushes, ColdReason reason, StepTimes step) {
    used_[pushes ? 1 : 0] = now;
    return ColdChoice{pushes ? ColdMode::kPushdown : ColdMode::kPrefetch,
                      reason, step};
  };
  const ColdCosts costs = CostsOf(work, figures);
  const StepTimes step = StepTimesOf(work, costs, own);
  if (costs.fetch == absl::InfiniteDuration()) {
    pushes_ = false;
    return choose(false, ColdReason::kUnmeasured, {});
  }
  if (trial_steps_ > 0) {
    --trial_steps_;
    return choose(!pushes_, ColdReason::kTrial, step);
  }
  pushes_ = BetterPushedDown(step, pushes_);
  if (now - used_[pushes_ ? 0 : 1] > kOld && WorthATry(step, pushes_)) {
    trial_steps_ = kTrialSteps - 1;
    return choose(!pushes_, ColdReason::kTrial, step);
  }
  return choose(pushes_, ColdReason::kRates, step);
}

const char* ColdReasonName(ColdReason reason) {
  switch (reason) {
    case ColdReason::kAsked:
      return "asked";
    case ColdReason::kMapped:
      return "mapped";
    case ColdReason::kExactness:
      return "exactness";
    case ColdReason::kPaused:
      return "paused";
    case ColdReason::kUnmeasured:
      return "unmeasured";
    case ColdReason::kRates:
      return "rates";
    case ColdReason::kTrial:
      return "trial";
  }
  return "unknown";
}

const char* ColdModeName(ColdMode mode) {
  switch (mode) {
    case ColdMode::kAuto:
      return "auto";
    case ColdMode::kMap:
      return "map";
    case ColdMode::kPrefetch:
      return "prefetch";
    case ColdMode::kPushdown:
      return "pushdown";
  }
  return "unknown";
}

}  // namespace farkv
