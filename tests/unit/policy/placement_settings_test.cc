#include "common/policy/placement_settings.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlacementScheduleTest, TheFirstEventsAreAt192256And320) {
  const PlacementSettings defaults;
  std::vector<int64_t> events;

  for (int64_t generated = 0; generated <= 320; ++generated) {
    if (ShouldPlan(defaults, generated)) events.push_back(generated);
  }

  EXPECT_THAT(events, ElementsAre(192, 256, 320));
}

TEST(PlacementScheduleTest, SinksAndRecentMustBeExceeded) {
  PlacementSettings settings;
  settings.interval = 16;
  settings.sinks = 16;
  settings.recent = 16;

  EXPECT_FALSE(ShouldPlan(settings, 32));
  EXPECT_FALSE(ShouldPlan(settings, 47));
  EXPECT_TRUE(ShouldPlan(settings, 48));
}

TEST(PlacementScheduleTest, AChainOf1422TokensHasTwentyEvents) {
  const PlacementSettings defaults;
  int events = 0;

  for (int64_t generated = 1; generated <= 1422; ++generated) {
    events += ShouldPlan(defaults, generated) ? 1 : 0;
  }

  EXPECT_EQ(events, 20);
}

TEST(PlacementSettingsTest, TheDefaultsAreValid) {
  EXPECT_TRUE(PlacementSettings{}.Validate().ok());
}

TEST(PlacementSettingsTest, ABadFieldIsNamedWithItsRange) {
  PlacementSettings granularity;
  granularity.granularity = 32;
  PlacementSettings ratio;
  ratio.hbm_ratio = 10001;
  PlacementSettings interval;
  interval.interval = 0;

  EXPECT_EQ(granularity.Validate().message(),
            "granularity is 32, must be 64, 16 or 1");
  EXPECT_EQ(ratio.Validate().message(),
            "hbm_ratio is 10001, must lie in [0, 10000]");
  EXPECT_THAT(std::string(interval.Validate().message()),
              HasSubstr("interval is 0, must lie in [1, "));
}

TEST(PlacementSettingsTest, PolicyNamesReadBack) {
  for (PlacementPolicy policy :
       {PlacementPolicy::kCumulativeAttention, PlacementPolicy::kAgeNormalised,
        PlacementPolicy::kRecency, PlacementPolicy::kRandom}) {
    const auto parsed = ParsePlacementPolicy(PlacementPolicyName(policy));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, policy);
  }
  EXPECT_EQ(ParsePlacementPolicy("lru").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace farkv
