#include "common/policy/placement.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/placement_sequence.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::InT0;
using ::testing::IsEmpty;
using testing::kOne;
using testing::PlanOrDie;
using testing::Sequence;

// ALGORITHMS 1.2: ten unprotected tokens at positions 4..13, between four
// sinks and two recent tokens.
Sequence WorkedExample() {
  Sequence sequence(16);
  const int64_t scores[] = {5, 1, 9, 2, 8, 3, 7, 4, 6, 0};
  for (int64_t i = 0; i < 10; ++i) sequence.score(4 + i) = scores[i] * kOne;
  return sequence;
}

PlacementSettings PerToken() {
  PlacementSettings settings;
  settings.granularity = 1;
  settings.recent = 2;
  return settings;
}

TEST(PlacementTest, TheWorkedExampleKeepsTheBestFourOfNine) {
  Sequence sequence = WorkedExample();
  PlacementInput input = sequence.Input();
  input.num_evicted = ShareOf(1000, 10);
  sequence.tier(13) = Tier::kT0;

  const PlacementPlan plan = PlanOrDie(PerToken(), input);

  EXPECT_EQ(plan.unprotected_tokens, 10);
  EXPECT_EQ(plan.num_evicted, 1);
  EXPECT_EQ(plan.n_hbm, 4);
  EXPECT_THAT(InT0(plan, 4, 13), ElementsAre(6, 8, 10, 12));
  EXPECT_EQ(plan.protected_tokens, 6);
  EXPECT_EQ(plan.t0_tokens(), 10);
}

TEST(PlacementTest, TheWorkedExamplesNextEventSwapsFiveForTwelve) {
  Sequence sequence = WorkedExample();
  PlacementInput input = sequence.Input();
  input.num_evicted = ShareOf(1000, 10);
  sequence.Apply(PlanOrDie(PerToken(), input));
  sequence.tier(13) = Tier::kT3;
  sequence.score(5) += 10 * kOne;
  input = sequence.Input();
  input.num_evicted = ShareOf(1000, 9);

  const PlacementPlan plan = PlanOrDie(PerToken(), input);

  EXPECT_EQ(plan.unprotected_tokens, 9);
  EXPECT_EQ(plan.num_evicted, 0);
  EXPECT_EQ(plan.n_hbm, 4);
  EXPECT_THAT(InT0(plan, 4, 13), ElementsAre(5, 6, 8, 10));
  EXPECT_THAT(plan.promote, ElementsAre(5));
  EXPECT_THAT(plan.demote, ElementsAre(12));
  EXPECT_EQ(plan.promoted_tokens, 1);
  EXPECT_EQ(plan.demoted_tokens, 1);
  EXPECT_EQ(plan.tiers[13], Tier::kT3);
}

TEST(PlacementTest, TheWorkedExampleInPairsKeepsTheYoungerOfEqualMeans) {
  const Sequence sequence = WorkedExample();
  PlacementSettings settings = PerToken();
  settings.granularity = 2;

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  // Groups 2..6 are (4,5) (6,7) (8,9) (10,11) (12,13) with means 3, 5.5, 5.5,
  // 5.5, 3.
  EXPECT_EQ(plan.unprotected_tokens, 10);
  EXPECT_EQ(plan.n_hbm, 5);
  EXPECT_THAT(InT0(plan, 2, 6), ElementsAre(4, 5));
  EXPECT_EQ(plan.hbm_tokens, 4);
}

TEST(PlacementTest, ARisingScoreComesBackAndNothingElseMoves) {
  Sequence sequence = WorkedExample();
  sequence.Apply(PlanOrDie(PerToken(), sequence.Input()));

  const PlacementPlan again = PlanOrDie(PerToken(), sequence.Input());

  EXPECT_THAT(again.promote, IsEmpty());
  EXPECT_THAT(again.demote, IsEmpty());
}

TEST(PlacementTest, AColdTokenMustExceedTheHysteresis) {
  Sequence sequence = WorkedExample();
  sequence.Apply(PlanOrDie(PerToken(), sequence.Input()));
  PlacementSettings settings = PerToken();
  settings.hysteresis = 2 * kOne;
  // In T0 are scores 9 8 7 6 5; position 11 rises from 4 to 7, exactly 2 above
  // the weakest.
  sequence.score(11) = 7 * kOne;

  const PlacementPlan equal = PlanOrDie(settings, sequence.Input());
  sequence.score(11) += 1;
  const PlacementPlan above = PlanOrDie(settings, sequence.Input());

  EXPECT_THAT(equal.promote, IsEmpty());
  EXPECT_THAT(above.promote, ElementsAre(11));
  EXPECT_THAT(above.demote, ElementsAre(4));
}

// Scores after the queries of positions 6 and 7 (ALGORITHMS 0.5): both saw
// tokens 0 to 6, one saw token 7, whose .233097 then beats half of .306286.
TEST(PlacementTest, AgeNormalisedDividesByTheQueriesThatCouldSeeTheToken) {
  Sequence sequence(8);
  const double scores[] = {.306286, .252373, .296284, .157744,
                           .471336, .296284, .186595, .233097};
  for (int64_t i = 0; i < 8; ++i) {
    sequence.score(i) =
        static_cast<int64_t>(scores[i] * static_cast<double>(kOne));
  }
  PlacementSettings settings;
  settings.granularity = 1;
  settings.sinks = 0;
  settings.recent = 0;
  settings.hbm_ratio = 2500;
  PlacementInput input = sequence.Input();
  input.first_scored_query = 6;

  const PlacementPlan cumulative = PlanOrDie(settings, input);
  settings.policy = PlacementPolicy::kAgeNormalised;
  const PlacementPlan normalised = PlanOrDie(settings, input);

  EXPECT_THAT(InT0(cumulative, 0, 7), ElementsAre(0, 4));
  EXPECT_THAT(InT0(normalised, 0, 7), ElementsAre(4, 7));
}

TEST(PlacementTest, RecencyKeepsTheYoungest) {
  Sequence sequence = WorkedExample();
  PlacementSettings settings = PerToken();
  settings.policy = PlacementPolicy::kRecency;
  settings.hbm_ratio = 3000;

  const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

  EXPECT_THAT(InT0(plan, 4, 13), ElementsAre(11, 12, 13));
}

TEST(PlacementTest, RandomDependsOnItsCoordinatesOnly) {
  Sequence sequence(400);
  PlacementSettings settings = PerToken();
  settings.policy = PlacementPolicy::kRandom;
  PlacementInput input = sequence.Input();
  const PlacementPlan first = PlanOrDie(settings, input);

  sequence.score(77) = 1000 * kOne;
  sequence.tier(300) = Tier::kT1;
  const PlacementPlan same = PlanOrDie(settings, input);
  input.event = 1;
  const PlacementPlan next_event = PlanOrDie(settings, input);
  input.event = 0;
  input.request = 1;
  const PlacementPlan other_request = PlanOrDie(settings, input);
  settings.seed = 1;
  input.request = 0;
  const PlacementPlan other_seed = PlanOrDie(settings, input);

  EXPECT_EQ(first.tiers, same.tiers);
  EXPECT_NE(first.tiers, next_event.tiers);
  EXPECT_NE(first.tiers, other_request.tiers);
  EXPECT_NE(first.tiers, other_seed.tiers);
  EXPECT_EQ(first.hbm_tokens, ShareOf(5000, 394));
}

TEST(PlacementTest, FullRatioMovesEverythingBackAndNoneKeepsTheProtected) {
  Sequence sequence = WorkedExample();
  sequence.tier(7) = Tier::kT1;
  sequence.tier(9) = Tier::kT2;
  PlacementSettings settings = PerToken();

  settings.hbm_ratio = 10000;
  const PlacementPlan all = PlanOrDie(settings, sequence.Input());
  settings.hbm_ratio = 0;
  const PlacementPlan none = PlanOrDie(settings, sequence.Input());

  EXPECT_THAT(all.promote, ElementsAre(7, 9));
  EXPECT_EQ(all.t0_tokens(), 16);
  EXPECT_EQ(none.hbm_tokens, 0);
  EXPECT_EQ(none.t0_tokens(), 6);
  EXPECT_EQ(none.demoted_tokens, 8);
}

TEST(PlacementTest, SpansOfDifferentLengthsAreRefused) {
  const Sequence sequence(8);
  PlacementInput input = sequence.Input();
  input.scores = input.scores.first(7);

  const absl::Status status = PlanPlacement(PerToken(), input).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("7 scores but 8 tiers"));
}

TEST(PlacementTest, CountsBeyondTheSequenceAreRefused) {
  const Sequence sequence(8);
  PlacementInput input = sequence.Input();
  input.prompt_tokens = 9;

  const absl::Status status = PlanPlacement(PerToken(), input).status();

  EXPECT_THAT(std::string(status.message()),
              HasSubstr("prompt_tokens is 9, must lie in [0, 8]"));
}

TEST(PlacementTest, AnEmptySequenceHasAnEmptyPlan) {
  const PlacementPlan plan = PlanOrDie(PerToken(), Sequence(0).Input());

  EXPECT_THAT(plan.tiers, IsEmpty());
  EXPECT_EQ(plan.t0_tokens(), 0);
}

// The tier of each group by ALGORITHMS 1.2 and the borders of placement.h,
// written anew: sort by mean, fill greedily, never exceed n_hbm.
std::vector<Tier> TiersByDefinition(const PlacementSettings& settings,
                                    const Sequence& sequence) {
  struct Group {
    size_t index;
    int64_t live, sum;
  };
  const auto tokens = static_cast<int64_t>(sequence.tiers.size());
  std::vector<Tier> tiers;
  std::vector<Group> candidates;
  int64_t unprotected = 0, used = 0;
  for (int64_t first = 0; first < tokens; first += settings.granularity) {
    Group group{tiers.size(), 0, 0};
    bool kept = false, tail = false;
    for (int64_t i = first; i < std::min(tokens, first + settings.granularity);
         ++i) {
      const auto at = static_cast<size_t>(i);
      kept |= i < sequence.prompt_tokens + settings.sinks ||
              i >= tokens - settings.recent;
      tail |= i >= sequence.sealed_tokens;
      if (sequence.tiers[at] == Tier::kT3) continue;
      ++group.live;
      group.sum += sequence.scores[at];
    }
    tiers.push_back(group.live == 0 ? Tier::kT3 : Tier::kT0);
    if (kept || group.live == 0) continue;
    unprotected += group.live;
    if (tail) {
      used += group.live;
    } else {
      candidates.push_back(group);
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Group& a, const Group& b) {
              const auto left = static_cast<__int128>(a.sum) * b.live;
              const auto right = static_cast<__int128>(b.sum) * a.live;
              return left != right ? left > right : a.index > b.index;
            });
  bool full = false;
  for (const Group& group : candidates) {
    full |= used + group.live > unprotected * settings.hbm_ratio / 10000;
    used += full ? 0 : group.live;
    if (full) tiers[group.index] = Tier::kT1;
  }
  return tiers;
}

TEST(PlacementTest, RandomSequencesAreFilledBestFirstAndNeverBeyondTheCount) {
  std::mt19937_64 random(20260514);
  for (int round = 0; round < 200; ++round) {
    Sequence sequence(static_cast<int64_t>(random() % 1500));
    const int64_t tokens = static_cast<int64_t>(sequence.tiers.size());
    for (int64_t i = 0; i < tokens; ++i) {
      sequence.score(i) = static_cast<int64_t>(random() % 50) * kOne;
      sequence.tier(i) = static_cast<Tier>(random() % 4);
    }
    sequence.prompt_tokens = tokens / 5;
    sequence.sealed_tokens = SealedTokens(tokens);
    PlacementSettings settings;
    settings.granularity = round % 3 == 0 ? 64 : round % 3 == 1 ? 16 : 1;
    settings.hbm_ratio = static_cast<int32_t>(random() % 10001);
    SCOPED_TRACE(::testing::Message() << "round " << round);

    const PlacementPlan plan = PlanOrDie(settings, sequence.Input());

    EXPECT_EQ(plan.tiers, TiersByDefinition(settings, sequence));
    EXPECT_LE(plan.hbm_tokens, plan.n_hbm);
    int64_t live = 0;
    int64_t in_t0 = 0;
    for (int64_t i = 0; i < tokens; ++i) {
      if (sequence.tier(i) == Tier::kT3) continue;
      ++live;
      const auto group = static_cast<size_t>(i / settings.granularity);
      if (plan.tiers[group] == Tier::kT0) ++in_t0;
    }
    EXPECT_EQ(in_t0, plan.t0_tokens());
    EXPECT_EQ(live, plan.protected_tokens + plan.unprotected_tokens);
    EXPECT_TRUE(std::is_sorted(plan.promote.begin(), plan.promote.end()));
    EXPECT_TRUE(std::is_sorted(plan.demote.begin(), plan.demote.end()));
  }
}

}  // namespace
}  // namespace farkv
