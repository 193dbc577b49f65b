#include "common/plan/cold_cost.h"

#include <algorithm>
#include <vector>

namespace farkv {
namespace {

// The share of the present step's time that a change must leave at most.
constexpr double kChangeBelow = 0.9;

}  // namespace

absl::Duration TimeFor(uint64_t amount, double per_second) {
  if (amount == 0) return absl::ZeroDuration();
  if (per_second <= 0) return absl::InfiniteDuration();
  return absl::Seconds(static_cast<double>(amount) / per_second);
}

ColdCosts CostsOf(const ColdWork& work, const NodeFigures& figures) {
  ColdCosts costs;
  costs.fetch = TimeFor(work.fetch_bytes, figures.link_bytes_per_second);
  if (!work.ahead) costs.fetch += work.layers * figures.round_trip;
  costs.push = work.layers * figures.round_trip +
               TimeFor(work.message_bytes, figures.link_bytes_per_second);
  if (figures.attend_rows_per_second > 0) {
    costs.push += TimeFor(work.attend_rows, figures.attend_rows_per_second);
  }
  return costs;
}

StepTimes StepTimesOf(const ColdWork& work, const ColdCosts& costs,
                      const OwnTimes& own) {
  StepTimes step;
  step.fetch = work.ahead ? std::max(own.fetching, costs.fetch)
                          : own.fetching + costs.fetch;
  step.push = own.pushing + costs.push * own.visible_push;
  return step;
}

bool BetterPushedDown(const StepTimes& step, bool pushes) {
  return pushes ? step.fetch >= step.push * kChangeBelow
                : step.push < step.fetch * kChangeBelow;
}

int CountSubtrees(std::span<const int32_t> pages) {
  struct Subtree {
    int level;
    int32_t index;
  };
  std::vector<Subtree> stack;
  for (const int32_t page : pages) {
    stack.push_back({0, page});
    while (stack.size() > 1) {
      const Subtree& right = stack.back();
      const Subtree& left = stack[stack.size() - 2];
      const bool siblings = left.level == right.level && left.index % 2 == 0 &&
                            left.index + 1 == right.index;
      if (!siblings) break;
      const Subtree parent{left.level + 1, left.index / 2};
      stack.resize(stack.size() - 2);
      stack.push_back(parent);
    }
  }
  return static_cast<int>(stack.size());
}

}  // namespace farkv
