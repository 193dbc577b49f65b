#include "common/policy/eviction_budget.h"

#include "common/policy/placement_settings.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

// Tokens destroyed when `tokens` have been generated under the default
// schedule, with the unprotected set of ALGORITHMS 1.2.
int64_t DestroyedAfter(int64_t tokens, const EvictionBudget& budget) {
  const PlacementSettings settings;
  int64_t destroyed = 0;
  for (int64_t generated = 1; generated <= tokens; ++generated) {
    if (!ShouldPlan(settings, generated)) continue;
    const int64_t unprotected =
        generated - settings.sinks - settings.recent - destroyed;
    destroyed += NumEvicted(budget, unprotected, generated, destroyed);
  }
  return destroyed;
}

int64_t DestroyedByRatio(int64_t tokens, int32_t per_event_ratio) {
  return DestroyedAfter(tokens, {per_event_ratio, kRatioOne});
}

TEST(EvictionBudgetTest, ThePerEventRatioCompoundsToThePublishedCounts) {
  EXPECT_EQ(DestroyedByRatio(1422, 300), 327);
  EXPECT_EQ(DestroyedByRatio(1422, 500), 491);
  EXPECT_EQ(DestroyedByRatio(1422, 700), 621);
  EXPECT_EQ(DestroyedByRatio(1422, 1000), 766);
  EXPECT_EQ(DestroyedByRatio(1422, 1500), 924);
  EXPECT_EQ(DestroyedByRatio(1422, 2000), 1021);
}

TEST(EvictionBudgetTest, TheCapBoundsTheShareOfTheWholeChain) {
  EXPECT_EQ(DestroyedAfter(1422, {1000, 300}), 300 * 1408 / 10000);
  EXPECT_EQ(DestroyedAfter(16384, {300, 300}), 300 * 16384 / 10000);
}

TEST(EvictionBudgetTest, TheDefaultsDestroyNothing) {
  EXPECT_EQ(NumEvicted({}, 1000, 2000, 0), 0);
  EXPECT_EQ(NumEvicted({300, 0}, 1000, 2000, 0), 0);
  EXPECT_EQ(NumEvicted({0, 300}, 1000, 2000, 0), 0);
}

TEST(EvictionBudgetTest, ACountAboveTheCapTakesNothingBack) {
  EXPECT_EQ(NumEvicted({300, 300}, 1000, 1000, 31), 0);
  EXPECT_EQ(NumEvicted({300, 300}, 1000, 1000, 25), 5);
}

TEST(EvictionBudgetTest, ARatioOutsideItsRangeIsNamed) {
  EXPECT_TRUE((EvictionBudget{300, 10000}).Validate().ok());
  EXPECT_EQ((EvictionBudget{-1, 0}).Validate().message(),
            "per_event_ratio is -1 per 10,000, must lie in [0, 10000]");
  EXPECT_EQ((EvictionBudget{0, 10001}).Validate().message(),
            "cumulative_cap is 10001 per 10,000, must lie in [0, 10000]");
}

}  // namespace
}  // namespace farkv
