#include "common/policy/destruction_budget.h"

#include "common/policy/placement_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSinks = 4;
constexpr int64_t kRecent = 128;

// A chain of `tokens` without a prompt, under the default schedule for bounds
// and an event at each step for the others.
struct Chain {
  explicit Chain(const DestructionBudget& of) : budget(of) {}

  void Generate(int64_t tokens) {
    for (int64_t t = 1; t <= tokens; ++t) Step(t);
  }
  void Step(int64_t t) {
    if (budget.kind == BudgetKind::kBounds && !ShouldPlan({}, t)) {
      return loss.Add(t, destroyed);
    }
    const int64_t always = kSinks + kRecent;
    const int64_t cached = t - destroyed;
    const int64_t kept = NumKept(budget, {.cached = cached,
                                          .generated = t,
                                          .always_kept = always,
                                          .unprotected = cached - always,
                                          .destroyed = destroyed});
    destroyed += cached - kept;
    if (kept == always) forced = destroyed;
    loss.Add(t, destroyed);
  }

  DestructionBudget budget;
  int64_t destroyed = 0;
  int64_t forced = 0;  // lost while only what always stays had room
  LossRecord loss;
};

Chain Generated(const DestructionBudget& budget, int64_t tokens) {
  Chain chain(budget);
  chain.Generate(tokens);
  return chain;
}

DestructionBudget Bounds(int32_t ratio) {
  return {.bounds = {ratio, kRatioOne}};
}

DestructionBudget Fixed(int64_t tokens) {
  return {.kind = BudgetKind::kFixed, .tokens = tokens, .bounds = {}};
}

DestructionBudget Proportional(int32_t ratio) {
  return {.kind = BudgetKind::kProportional, .ratio = ratio, .bounds = {}};
}

// ALGORITHMS 1.3, first table: per cent of all generated tokens.
TEST(DestructionBudgetTest, TheRatioCompoundsAsPublished) {
  const int64_t tokens[] = {500, 1000, 1422, 2048, 4096, 16384};
  const struct {
    int32_t ratio;
    double lost[6];
  } rows[] = {{300, {5.0, 14.9, 23.0, 32.7, 53.6, 86.6}},
              {500, {8.4, 23.3, 34.5, 46.6, 68.1, 91.8}},
              {700, {11.6, 30.7, 43.7, 56.5, 76.1, 94.0}},
              {1000, {16.2, 39.6, 53.9, 66.4, 82.7, 95.7}},
              {1500, {23.0, 50.7, 65.0, 75.8, 87.9, 97.0}},
              {2000, {28.8, 58.4, 71.8, 81.1, 90.5, 97.6}}};
  for (const auto& row : rows) {
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(100 * Generated(Bounds(row.ratio), tokens[i]).loss.at_end,
                  row.lost[i], .051)
          << row.ratio << " after " << tokens[i];
    }
  }
}

TEST(DestructionBudgetTest, TheRatioDestroysThePublishedCounts) {
  EXPECT_EQ(Generated(Bounds(300), 1422).destroyed, 327);
  EXPECT_EQ(Generated(Bounds(500), 1422).destroyed, 491);
  EXPECT_EQ(Generated(Bounds(700), 1422).destroyed, 621);
  EXPECT_EQ(Generated(Bounds(1000), 1422).destroyed, 766);
  EXPECT_EQ(Generated(Bounds(1500), 1422).destroyed, 924);
  EXPECT_EQ(Generated(Bounds(2000), 1422).destroyed, 1021);
}

// The unprotected set saturates, so that the ratio acts as a fixed budget.
TEST(DestructionBudgetTest, TheUnprotectedSetSaturates) {
  const auto unprotected = [](int32_t ratio) {
    return 65536 - Generated(Bounds(ratio), 65536).destroyed - kSinks - kRecent;
  };

  EXPECT_NEAR(static_cast<double>(unprotected(300)), 2069, 33);
  EXPECT_NEAR(static_cast<double>(unprotected(1000)), 576, 10);
}

// ALGORITHMS 1.3, second table: averaged over 1,422 tokens.
TEST(DestructionBudgetTest, TheAverageLossesAreThePublishedOnes) {
  const auto average = [](const DestructionBudget& budget) {
    return 100 * Generated(budget, 1422).loss.average();
  };

  EXPECT_NEAR(average(Bounds(300)), 9.8, .06);
  EXPECT_NEAR(average(Bounds(500)), 15.5, .06);
  EXPECT_NEAR(average(Bounds(700)), 20.4, .06);
  EXPECT_NEAR(average(Bounds(1000)), 26.5, .06);
  EXPECT_NEAR(average(Bounds(1500)), 34.3, .06);
  EXPECT_NEAR(average(Bounds(2000)), 39.9, .06);
  // Published before this step's event, hence a step lower.
  EXPECT_NEAR(average(Proportional(9000)), 9.0, .11);
  EXPECT_NEAR(average(Proportional(8000)), 17.9, .11);
  EXPECT_NEAR(average(Proportional(7000)), 26.7, .11);
  EXPECT_NEAR(average(Proportional(5000)), 43.6, .11);
}

// ALGORITHMS 1.3, third table.
TEST(DestructionBudgetTest, AFixedBudgetLosesFarLessThanAProportionalOne) {
  const auto fixed = [](double share) {
    const auto tokens = static_cast<int64_t>(share * 16384);
    return 100 * Generated(Fixed(tokens), 16384).loss.average();
  };

  EXPECT_NEAR(fixed(.5), 15.3, .06);
  EXPECT_NEAR(fixed(.25), 40.3, .06);
  EXPECT_NEAR(fixed(.1), 67.0, .06);
  EXPECT_NEAR(100 * Generated(Proportional(5000), 16384).loss.average(), 49.4,
              .06);
  EXPECT_NEAR(100 * Generated(Proportional(2500), 1422).loss.average(), 62.2,
              .06);
  EXPECT_NEAR(100 * Generated(Proportional(2500), 16384).loss.average(), 73.9,
              .06);
}

TEST(DestructionBudgetTest, TheFirstLossesOfAProportionalBudgetAreForced) {
  EXPECT_EQ(Generated(Proportional(5000), 1422).forced, 133);
  EXPECT_EQ(Generated(Proportional(3000), 1422).forced, 311);
  EXPECT_EQ(Generated(Proportional(9000), 1422).forced, 15);
  EXPECT_NEAR(133.0 / static_cast<double>(
                          Generated(Proportional(5000), 1422).destroyed),
              .19, .005);
  EXPECT_NEAR(311.0 / static_cast<double>(
                          Generated(Proportional(3000), 1422).destroyed),
              .31, .005);
}

TEST(DestructionBudgetTest, BothBoundsHoldAtEveryEvent) {
  Chain chain({.bounds = {500, 1000}});
  for (int64_t t = 1; t <= 8000; ++t) {
    const int64_t before = chain.destroyed;
    const int64_t unprotected = t - before - kSinks - kRecent;
    chain.Step(t);
    if (chain.destroyed == before) continue;
    EXPECT_LE(chain.destroyed - before, ShareOf(500, unprotected)) << t;
    EXPECT_LE(chain.destroyed, ShareOf(1000, t)) << t;
  }
  EXPECT_EQ(chain.destroyed, ShareOf(1000, 8000));
}

TEST(DestructionBudgetTest, TheProtectedPromptIsBesideAProportionalBudget) {
  EXPECT_EQ(NumKept(Proportional(5000), {.cached = 1500,
                                         .protected_prompt = 500,
                                         .generated = 1000,
                                         .always_kept = 132}),
            1000);
  EXPECT_EQ(NumKept(Proportional(1000), {.cached = 1500,
                                         .protected_prompt = 500,
                                         .generated = 1000,
                                         .always_kept = 132}),
            632);
}

TEST(DestructionBudgetTest, ABadFieldIsNamed) {
  EXPECT_THAT(std::string(Fixed(0).Validate().message()),
              HasSubstr("budget_tokens is 0, must lie in [1,"));
  EXPECT_EQ(Proportional(10001).Validate().message(),
            "budget_ratio is 10001, must lie in [1, 10000]");
  EXPECT_FALSE(Bounds(-1).Validate().ok());
  EXPECT_TRUE(DestructionBudget{}.Validate().ok());
  EXPECT_STREQ(BudgetKindName(BudgetKind::kFixed), "fixed");
}

}  // namespace
}  // namespace farkv
