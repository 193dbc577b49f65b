#include "common/policy/h2o_policy.h"

#include <algorithm>

#include "common/policy/destruction_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kOne = 0x1p40;

// ALGORITHMS 2: heavy hitters 2, recent 2. Each step gives its attention row
// over all tokens; what is cached is renormalised and added.
struct Steps {
  void Step(const std::vector<double>& row) {
    positions.push_back(static_cast<int64_t>(row.size()) - 1);
    scores.push_back(0);
    double sum = 0;
    for (const int64_t p : positions) sum += row[static_cast<size_t>(p)];
    for (size_t i = 0; i < positions.size(); ++i) {
      scores[i] += static_cast<int64_t>(row[static_cast<size_t>(positions[i])] /
                                        sum * kOne);
    }
    if (!H2oPolicy{}.IsDue(
            {.cached = static_cast<int64_t>(positions.size()), .budget = 4})) {
      return;
    }
    EvictionInput input;
    input.positions = positions;
    input.num_tokens = static_cast<int64_t>(row.size());
    input.num_kept = 4;
    input.cumulative = scores;
    const auto decision = DecideEviction(H2oPolicy{}, input);
    ASSERT_TRUE(decision.ok()) << decision.status();
    Keep(decision->kept);
  }

  void Keep(const std::vector<int64_t>& kept) {
    std::vector<int64_t> kept_scores;
    for (size_t i = 0; i < positions.size(); ++i) {
      if (std::count(kept.begin(), kept.end(), positions[i]) > 0) {
        kept_scores.push_back(scores[i]);
      }
    }
    positions = kept;
    scores = kept_scores;
  }

  double score(size_t i) const { return static_cast<double>(scores[i]) / kOne; }

  std::vector<int64_t> positions;
  std::vector<int64_t> scores;
};

TEST(H2oPolicyTest, TheWorkedSteps) {
  Steps run;
  run.Step({1});
  run.Step({.7, .3});
  run.Step({.6, .1, .3});
  run.Step({.5, .05, .25, .2});
  EXPECT_EQ(run.positions.size(), 4u);

  run.Step({.4, .05, .05, .3, .2});
  EXPECT_THAT(run.positions, ElementsAre(0, 2, 3, 4));
  EXPECT_NEAR(run.score(0), 3.2, 1e-9);
  EXPECT_NEAR(run.score(1), .6, 1e-9);
  EXPECT_NEAR(run.score(2), .5, 1e-9);
  EXPECT_NEAR(run.score(3), .2, 1e-9);

  run.Step({.35, .02, .03, .4, .05, .15});
  EXPECT_THAT(run.positions, ElementsAre(0, 3, 4, 5));
  EXPECT_NEAR(run.score(0), 3.5571, 5e-5);
  EXPECT_NEAR(run.score(1), .9082, 5e-5);
  EXPECT_NEAR(run.score(2), .2510, 5e-5);
  EXPECT_NEAR(run.score(3), .1531, 5e-5);
}

TEST(H2oPolicyTest, AStatedRecentCountReplacesTheHalf) {
  const std::vector<int64_t> positions = {0, 1, 2, 3, 4, 5};
  const std::vector<int64_t> sums = {9, 8, 7, 1, 2, 0};
  EvictionInput input;
  input.positions = positions;
  input.num_tokens = 6;
  input.num_kept = 4;
  input.cumulative = sums;

  EXPECT_THAT(DecideEviction(H2oPolicy{.recent = 1}, input)->kept,
              ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(DecideEviction(H2oPolicy{.recent = 3}, input)->kept,
              ElementsAre(0, 3, 4, 5));
  EXPECT_FALSE(DecideEviction(H2oPolicy{.recent = -2}, input).ok());
}

TEST(H2oPolicyTest, WithoutScoresThereIsNoDecision) {
  const std::vector<int64_t> positions = {0, 1, 2, 3};
  EvictionInput input;
  input.positions = positions;
  input.num_tokens = 4;
  input.num_kept = 2;

  const absl::Status status = DecideEviction(H2oPolicy{}, input).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("h2o needs cumulative attention or mass of position 0"));
}

TEST(H2oPolicyTest, ANegativeSumIsBrokenAndKept) {
  const std::vector<int64_t> positions = {0, 1, 2, 3, 4, 5};
  const std::vector<int64_t> sums = {-1, 8, 7, 6, 0, 0};
  EvictionInput input;
  input.positions = positions;
  input.num_tokens = 6;
  input.num_kept = 4;
  input.cumulative = sums;

  const auto decision = DecideEviction(H2oPolicy{}, input);

  EXPECT_THAT(decision->kept, ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(decision->num_non_finite, 1);
}

}  // namespace
}  // namespace farkv
