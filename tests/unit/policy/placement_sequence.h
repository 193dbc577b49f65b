// A sequence to plan for, with what the tests vary. Test only.
#ifndef FARKV_TESTS_UNIT_POLICY_PLACEMENT_SEQUENCE_H_
#define FARKV_TESTS_UNIT_POLICY_PLACEMENT_SEQUENCE_H_

#include <vector>

#include "common/policy/placement.h"
#include "gtest/gtest.h"

namespace farkv::testing {

inline constexpr int64_t kOne = int64_t{1} << 40;  // a score of 1

struct Sequence {
  std::vector<int64_t> scores;
  std::vector<Tier> tiers;
  int64_t prompt_tokens = 0;
  int64_t sealed_tokens = 0;

  // All in T0, all scores zero, everything sealed.
  explicit Sequence(int64_t num_tokens)
      : scores(static_cast<size_t>(num_tokens), 0),
        tiers(static_cast<size_t>(num_tokens), Tier::kT0),
        sealed_tokens(num_tokens) {}

  int64_t& score(int64_t position) {
    return scores[static_cast<size_t>(position)];
  }
  Tier& tier(int64_t position) { return tiers[static_cast<size_t>(position)]; }

  PlacementInput Input() const {
    PlacementInput input;
    input.scores = scores;
    input.tiers = tiers;
    input.prompt_tokens = prompt_tokens;
    input.sealed_tokens = sealed_tokens;
    return input;
  }

  // Carries a plan out, as the tiering room would.
  void Apply(const PlacementPlan& plan) {
    for (size_t i = 0; i < tiers.size(); ++i) {
      if (tiers[i] == Tier::kT3) continue;
      tiers[i] = plan.tiers[i / static_cast<size_t>(plan.granularity)];
    }
  }
};

inline PlacementPlan PlanOrDie(const PlacementSettings& settings,
                               const PlacementInput& input) {
  absl::StatusOr<PlacementPlan> plan = PlanPlacement(settings, input);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : PlacementPlan{};
}

// Groups planned into T0, ascending, of those that are not protected when
// `first` and `last` bound them.
inline std::vector<int64_t> InT0(const PlacementPlan& plan, int64_t first,
                                 int64_t last) {
  std::vector<int64_t> groups;
  for (int64_t k = first; k <= last; ++k) {
    if (plan.tiers[static_cast<size_t>(k)] == Tier::kT0) groups.push_back(k);
  }
  return groups;
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_POLICY_PLACEMENT_SEQUENCE_H_
