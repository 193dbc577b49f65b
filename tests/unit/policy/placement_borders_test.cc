// What happens where the borders of prompt, sinks, recent window and tail fall
// inside a group of more than one token.
#include "common/policy/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/placement_sequence.h"

namespace farkv {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::InT0;
using testing::kOne;
using testing::PlanOrDie;
using testing::Sequence;

// 20 groups of 16; group 0 holds the prompt and the first sinks.
Sequence TwentyGroups() {
  Sequence sequence(320);
  sequence.prompt_tokens = 14;
  return sequence;
}

PlacementSettings GroupsOf16() {
  PlacementSettings settings;
  settings.granularity = 16;
  settings.recent = 33;  // 287..319: one token of group 17, groups 18 and 19
  return settings;
}

TEST(PlacementBordersTest, AGroupWithAProtectedTokenIsProtectedWhole) {
  // Sinks are 14..17, so group 1 holds two of them.
  const PlacementPlan plan = PlanOrDie(GroupsOf16(), TwentyGroups().Input());

  EXPECT_EQ(plan.protected_tokens, 5 * 16);  // groups 0, 1, 17, 18, 19
  EXPECT_EQ(plan.unprotected_tokens, 15 * 16);
  EXPECT_EQ(plan.n_hbm, 120);
  EXPECT_THAT(InT0(plan, 0, 1), ElementsAre(0, 1));
  EXPECT_THAT(InT0(plan, 17, 19), ElementsAre(17, 18, 19));
  EXPECT_EQ(plan.hbm_tokens, 7 * 16);  // whole groups below 120
}

TEST(PlacementBordersTest, AnEvictedProtectedTokenStillProtectsItsGroup) {
  Sequence sequence = TwentyGroups();
  sequence.tier(287) = Tier::kT3;

  const PlacementPlan plan = PlanOrDie(GroupsOf16(), sequence.Input());

  EXPECT_EQ(plan.tiers[17], Tier::kT0);
  EXPECT_EQ(plan.protected_tokens, 5 * 16 - 1);
}

TEST(PlacementBordersTest, APromptThatMayLeaveIsRankedLikeTheRest) {
  Sequence sequence(320);
  sequence.prompt_tokens = 160;
  for (int64_t i = 0; i < 16; ++i) sequence.score(i) = kOne;
  PlacementSettings settings = GroupsOf16();
  settings.prompt_in_t0 = false;
  settings.hbm_ratio = 1500;

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  // Protected are the sinks' group 10 and groups 17, 18, 19. Of 256 tokens 38
  // stay: the scored group 0 and, of equal ones, the youngest.
  EXPECT_EQ(plan.unprotected_tokens, 256);
  EXPECT_EQ(plan.n_hbm, 38);
  EXPECT_THAT(InT0(plan, 0, 19), ElementsAre(0, 10, 16, 17, 18, 19));
}

TEST(PlacementBordersTest, TheTailStaysAndUsesUpTheCountFirst) {
  Sequence sequence = TwentyGroups();
  sequence.sealed_tokens = 256;  // groups 16..19 are the tail
  for (int64_t i = 32; i < 48; ++i) sequence.score(i) = kOne;
  PlacementSettings settings = GroupsOf16();
  settings.recent = 17;  // group 18 in part, 19: leaves 16 and 17
  settings.hbm_ratio = 2000;

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  // |U| is 256 with the tail's groups 16 and 17 in it; of 51 tokens 32 are
  // the tail's, one more group fits.
  EXPECT_EQ(plan.unprotected_tokens, 256);
  EXPECT_EQ(plan.n_hbm, 51);
  EXPECT_THAT(InT0(plan, 2, 17), ElementsAre(2, 16, 17));
  EXPECT_EQ(plan.hbm_tokens, 48);
}

TEST(PlacementBordersTest, ATailLargerThanTheCountStaysAlone) {
  Sequence sequence = TwentyGroups();
  sequence.sealed_tokens = 256;
  for (int64_t i = 32; i < 48; ++i) sequence.score(i) = kOne;
  PlacementSettings settings = GroupsOf16();
  settings.recent = 0;
  settings.hbm_ratio = 500;

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  EXPECT_EQ(plan.n_hbm, 14);
  EXPECT_THAT(InT0(plan, 2, 19), ElementsAre(16, 17, 18, 19));
  EXPECT_EQ(plan.hbm_tokens, 64);
}

TEST(PlacementBordersTest, AGroupOfWhichOneTokenIsUnsealedIsTail) {
  Sequence sequence = TwentyGroups();
  sequence.sealed_tokens = 319;
  PlacementSettings settings = GroupsOf16();
  settings.recent = 0;
  settings.hbm_ratio = 0;

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  EXPECT_THAT(InT0(plan, 2, 19), ElementsAre(19));
}

TEST(PlacementBordersTest, DeadTokensNeitherCountNorDiluteTheMean) {
  Sequence sequence = TwentyGroups();
  PlacementSettings settings = GroupsOf16();
  settings.hbm_ratio = 800;
  // Group 5: four live tokens of score 2. Group 6: sixteen of score 1.
  for (int64_t i = 80; i < 96; ++i) {
    sequence.score(i) = 2 * kOne;
    if (i >= 84) sequence.tier(i) = Tier::kT3;
    sequence.score(i + 16) = kOne;
  }

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  EXPECT_EQ(plan.unprotected_tokens, 15 * 16 - 12);
  EXPECT_EQ(plan.n_hbm, 18);
  EXPECT_THAT(InT0(plan, 2, 16), ElementsAre(5));
  EXPECT_EQ(plan.hbm_tokens, 4);  // the next best group has 16
}

TEST(PlacementBordersTest, AGroupWithoutLiveTokensIsGone) {
  Sequence sequence = TwentyGroups();
  for (int64_t i = 64; i < 80; ++i) sequence.tier(i) = Tier::kT3;

  const PlacementPlan plan = PlanOrDie(GroupsOf16(), sequence.Input());

  EXPECT_EQ(plan.tiers[4], Tier::kT3);
  EXPECT_EQ(plan.unprotected_tokens, 14 * 16);
}

TEST(PlacementBordersTest, AGroupInTwoTiersIsCompletedOrDropped) {
  Sequence sequence = TwentyGroups();
  for (int64_t i = 32; i < 64; i += 2) sequence.tier(i) = Tier::kT1;
  for (int64_t i = 32; i < 48; ++i) sequence.score(i) = kOne;

  const PlacementPlan plan = PlanOrDie(GroupsOf16(), sequence.Input());

  EXPECT_THAT(plan.promote, ElementsAre(2));
  EXPECT_EQ(plan.promoted_tokens, 8);
  EXPECT_EQ(plan.demote.front(), 3);
  EXPECT_EQ(plan.demoted_tokens, 8 + 7 * 16);
}

TEST(PlacementBordersTest, AShortSequenceIsProtectedWhole) {
  Sequence sequence(70);
  sequence.prompt_tokens = 10;
  sequence.sealed_tokens = 64;
  const PlacementSettings defaults;

  const PlacementPlan plan = PlanOrDie(defaults, sequence.Input());

  EXPECT_THAT(plan.tiers, Each(Tier::kT0));
  EXPECT_EQ(plan.unprotected_tokens, 0);
  EXPECT_EQ(plan.t0_tokens(), 70);
}

}  // namespace
}  // namespace farkv
