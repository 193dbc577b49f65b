#include "common/policy/snap_kv_policy.h"

#include "common/policy/destruction_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using testing::F1;
using ::testing::HasSubstr;

SnapKvPolicy Small(WindowScorer scorer) { return {.window = {scorer, 2, 3}}; }

std::vector<int64_t> KeptOrDie(const SnapKvPolicy& policy,
                               const EvictionInput& input) {
  const auto decision = DecideEviction(policy, input);
  EXPECT_TRUE(decision.ok()) << decision.status();
  return decision.ok() ? decision->kept : std::vector<int64_t>();
}

TEST(SnapKvPolicyTest, TheFixturesThreeBestAndTheWindow) {
  const F1 f1;

  EXPECT_THAT(KeptOrDie(Small(WindowScorer::kCausalMean), f1.Input(5)),
              ElementsAre(1, 4, 5, 6, 7));
}

// .1058 .161575 .131667 .140632 .171758 .142676, and .234603 .234603 .166509
// .166509 .234603 .234603 with ties for the younger.
TEST(SnapKvPolicyTest, TheDecodeVariantsOnTheFixture) {
  const F1 f1;

  EXPECT_THAT(KeptOrDie(Small(WindowScorer::kCandidateMean), f1.Input(5)),
              ElementsAre(1, 4, 5, 6, 7));
  EXPECT_THAT(KeptOrDie(Small(WindowScorer::kGroupMax), f1.Input(4)),
              ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(KeptOrDie(Small(WindowScorer::kGroupMax), f1.Input(5)),
              ElementsAre(1, 4, 5, 6, 7));
}

TEST(SnapKvPolicyTest, GivenMassIsReadInsteadOfTheWindow) {
  const F1 f1;
  EvictionInput input = f1.Input(4);
  const std::vector<float> mass = {.9f, .1f, .1f, .8f, .1f, .1f};
  input.mass = mass;

  EXPECT_THAT(KeptOrDie(Small(WindowScorer::kCandidateMean), input),
              ElementsAre(0, 3, 6, 7));
  input.mass = input.mass.first(5);
  EXPECT_THAT(
      std::string(DecideEviction(Small(WindowScorer::kCandidateMean), input)
                      .status()
                      .message()),
      HasSubstr("5 masses for 6 rows older than the window"));
}

TEST(SnapKvPolicyTest, EachVariantHasItsOwnTrigger) {
  const SnapKvPolicy prompt = SnapKvPolicy::Prompt();
  const SnapKvPolicy rkv = SnapKvPolicy::Rkv();
  const SnapKvPolicy vase = SnapKvPolicy::Vase();
  const EventCounts after_prompt{
      .prompt_tokens = 640, .cached = 640, .budget = 320};
  const EventCounts at_256{
      .prompt_tokens = 100, .generated = 156, .cached = 230, .budget = 200};
  const EventCounts at_320_rows{
      .prompt_tokens = 100, .generated = 301, .cached = 320, .budget = 256};

  EXPECT_TRUE(prompt.IsDue(after_prompt));
  EXPECT_FALSE(prompt.IsDue(at_256));
  EXPECT_FALSE(rkv.IsDue(after_prompt));
  EXPECT_TRUE(rkv.IsDue(at_256));
  EXPECT_FALSE(rkv.IsDue(at_320_rows));
  EXPECT_FALSE(vase.IsDue(after_prompt));
  EXPECT_FALSE(vase.IsDue(at_256));
  EXPECT_TRUE(vase.IsDue(at_320_rows));
}

TEST(SnapKvPolicyTest, QueriesOfADifferentShapeAreRefused) {
  F1 f1;
  f1.SetQueries(2, 2, {1, 0, 1, 1, 0, 1});

  EXPECT_THAT(
      std::string(
          DecideEviction(SnapKvPolicy::Vase(), f1.Input(5)).status().message()),
      HasSubstr("6 query elements, expected 2 heads x 2 queries x 2"));
}

TEST(SnapKvPolicyTest, AnEvenKernelIsRefused) {
  SnapKvPolicy policy = SnapKvPolicy::Vase();
  policy.window.kernel = 4;

  EXPECT_EQ(policy.Validate().message(), "kernel is 4, must be odd");
}

}  // namespace
}  // namespace farkv
