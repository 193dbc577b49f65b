#include "common/policy/selection.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using testing::Digits;
using ::testing::ElementsAre;
using testing::F1;
using ::testing::IsEmpty;
using testing::RandomHead;

KeyBounds BoundsOf(testing::Head& head, int64_t rows, int32_t dim,
                   int32_t group) {
  KeyBounds bounds(dim, group);
  for (int64_t i = 0; i < rows; ++i) {
    bounds.Add(i, {head.key(i), static_cast<size_t>(dim)});
  }
  return bounds;
}

// ALGORITHMS 9: groups of 2, q = (1, -1).
TEST(KeyBoundsTest, TheFixture) {
  F1 f1;
  const KeyBounds bounds = BoundsOf(f1, 8, 2, 2);
  std::vector<float> largest;
  for (int64_t group = 0; group < 4; ++group) {
    largest.push_back(
        std::max(f1.key(2 * group)[0] - f1.key(2 * group)[1],
                 f1.key(2 * group + 1)[0] - f1.key(2 * group + 1)[1]));
  }

  EXPECT_THAT(bounds.UpperBounds(std::vector<float>{1, -1}),
              ElementsAre(2, 1, 0, 2));
  EXPECT_THAT(largest, ElementsAre(2, 0, 0, 1));
}

TEST(KeyBoundsTest, AreAboveEveryLogitAndTheSameOnEveryTarget) {
  RandomHead head(1, 500, 32, 40);
  const KeyBounds bounds = BoundsOf(head, 500, 32, 16);
  EXPECT_EQ(bounds.num_groups(), 32);
  EXPECT_EQ(bounds.rows(31), 4);
  std::vector<std::vector<float>> first;

  ForEachHighwayTarget([&] {
    std::vector<std::vector<float>> all;
    for (size_t w = 0; w < 40; ++w) {
      const auto query = head.Window().data.subspan(w * 32, 32);
      all.push_back(bounds.UpperBounds(query));
      for (int64_t i = 0; i < 500; ++i) {
        float logit = 0;
        for (size_t c = 0; c < 32; ++c) logit += query[c] * head.key(i)[c];
        ASSERT_LE(logit, all.back()[static_cast<size_t>(i / 16)] + 1e-4f);
      }
    }
    if (first.empty()) first = all;
    EXPECT_EQ(all, first);
  });
}

TEST(KeyBoundsTest, AnEmptyGroupIsBelowEverythingAndABrokenOneIsRead) {
  KeyBounds bounds(2, 4);
  bounds.Add(9, std::vector<float>{1, 2});
  bounds.Add(0, std::vector<float>{std::nanf(""), 2});
  bounds.Add(1, std::vector<float>{5, 5});

  const std::vector<float> u = bounds.UpperBounds(std::vector<float>{-1, 1});

  EXPECT_TRUE(std::isnan(u[0]));
  EXPECT_EQ(u[1], -HUGE_VALF);
  EXPECT_EQ(u[2], 1);
  EXPECT_THAT(SelectGroups(u, 3), ElementsAre(0, 2));
}

TEST(Bf16BoundTest, RoundsOutwards) {
  for (const float x :
       {1.001f, -1.001f, 3e-41f, -3e-41f, 0.0f, 1.0f, 1e30f, -1e30f, 0.99f}) {
    const float below = Bf16ToFloat(Bf16Below(x));
    const float above = Bf16ToFloat(Bf16Above(x));
    EXPECT_LE(below, x);
    EXPECT_GE(above, x);
    EXPECT_TRUE(below == x || above != x) << x;
    EXPECT_LE(above - below, std::abs(x) * 0x1p-6f + 1e-38f) << x;
  }
}

// Heads A and B, groups of 2. A's bounds 2 1 0 2 less 2; B's of (0, 10) less
// 20: the large head does not drown the other.
TEST(QuestScoresTest, EachHeadCountsFromItsOwnLargest) {
  F1 f1;
  const KeyBounds bounds = BoundsOf(f1, 8, 2, 2);
  const std::vector<float> queries = {1, -1, 0, 10};

  EXPECT_THAT(bounds.UpperBounds(std::vector<float>{0, 10}),
              ElementsAre(10, 10, 20, 0));
  EXPECT_THAT(QuestScores(bounds, {.num_heads = 2, .queries = queries}),
              ElementsAre(0, -1, 0, 0));
}

TEST(SelectGroupsTest, TheLastIsAlwaysReadAndTiesKeepTheYounger) {
  const std::vector<float> scores = {3, 1, 2, 2, -9};

  EXPECT_THAT(SelectGroups(scores, 1), ElementsAre(4));
  EXPECT_THAT(SelectGroups(scores, 3), ElementsAre(0, 3, 4));
  EXPECT_THAT(SelectGroups(scores, 9), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(SelectGroups({}, 3), IsEmpty());
}

TEST(SelectGroupsTest, ABrokenScoreIsReadFirst) {
  const std::vector<float> scores = {3, std::nanf(""), 2, HUGE_VALF, 1};

  EXPECT_THAT(SelectGroups(scores, 3), ElementsAre(1, 3, 4));
}

TEST(SelectionSettingsTest, ReadsTheBudgetAtLeastThreeAndAllOfDenseLayers) {
  const SelectionSettings quest{.policy = SelectionPolicy::kQuest,
                                .budget_tokens = 1024};
  const SelectionSettings small{.policy = SelectionPolicy::kQuest,
                                .budget_tokens = 16};

  EXPECT_EQ(quest.NumSelected(0, 500), 500);
  EXPECT_EQ(quest.NumSelected(1, 500), 500);
  EXPECT_EQ(quest.NumSelected(2, 500), 64);
  EXPECT_EQ(quest.NumSelected(2, 60), 60);
  EXPECT_EQ(small.NumSelected(2, 500), 3);
  const SelectionSettings quarter{.policy = SelectionPolicy::kQuest,
                                  .budget_ratio = 2500};
  EXPECT_EQ(quarter.NumSelected(2, 43), 10);
  EXPECT_EQ(quarter.NumSelected(2, 9), 3);
  EXPECT_EQ((SelectionSettings{.budget_ratio = 10001}).Validate().message(),
            "budget_ratio per 10,000 is 10001, must lie in [0, 10000]");
  EXPECT_EQ(SelectionSettings{}.NumSelected(9, 500), 500);
  EXPECT_EQ((SelectionSettings{.group_tokens = 0}).Validate().message(),
            "group_tokens is 0, must lie in [1, 4096]");
}

// With tau = 14 the rest of a thousand groups is below 1e-3.
TEST(IsNegligibleTest, BoundsTheMassOfAGroup) {
  const float edge = (3 - 14 - std::log(16.0f)) * 2;

  EXPECT_TRUE(IsNegligible(edge - .01f, .5f, 16, 3, 14));
  EXPECT_FALSE(IsNegligible(edge + .01f, .5f, 16, 3, 14));
  EXPECT_LT(1000 * std::exp(-14.0), 1e-3);
}

// ALGORITHMS 8: groups of 2 of the fixture's keys.
TEST(GateFeaturesTest, TheFixture) {
  F1 f1;
  const auto features = [&](int64_t group) {
    return GateFeatures({f1.key(2 * group), 4}, 2);
  };

  EXPECT_THAT(features(0), ElementsAre(2, 1, 0, 0, 1, .5f));
  EXPECT_THAT(features(1), ElementsAre(1, 1, -1, 0, 0, .5f));
  EXPECT_THAT(features(2), ElementsAre(1, 2, 0, 1, .5f, 1.5f));
  EXPECT_THAT(features(3), ElementsAre(1, 0, 0, -1, .5f, -.5f));
}

TEST(SelectionPolicyTest, NamesReadBackAndUnknownOnesAreRefused) {
  for (const SelectionPolicy policy :
       {SelectionPolicy::kNone, SelectionPolicy::kQuest}) {
    EXPECT_EQ(*ParseSelectionPolicy(SelectionPolicyName(policy)), policy);
  }
  EXPECT_EQ(ParseSelectionPolicy("gate").status().message(),
            "selection is \"gate\", must be none or quest");
}

// Quest and any gate are one kind of value.
TEST(GroupScorerTest, QuestIsOne) {
  F1 f1;
  const KeyBounds bounds = BoundsOf(f1, 8, 2, 2);
  const GroupScorer scorer = [&](const GroupScoreQuery& query) {
    return QuestScores(bounds, query);
  };
  const std::vector<float> queries = {1, -1};

  const auto scores = scorer({.num_heads = 1, .queries = queries});

  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(SelectGroups(*scores, 2), ElementsAre(0, 3));
}

}  // namespace
}  // namespace farkv
