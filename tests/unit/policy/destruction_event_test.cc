// Whole chains under every policy and budget.
#include "common/policy/destruction_event.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "common/policy/placement_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::RandomHead;

constexpr int32_t kDim = 16;

// One head of a sequence that generates a row per step. The rows, queries and
// sums of all tokens exist from the start.
class Chain {
 public:
  Chain(const DestructionSettings& settings, int64_t prompt, int64_t length)
      : settings_(settings), head_(7, length, kDim, 1), prompt_(prompt) {
    cached_.resize(static_cast<size_t>(prompt));
    std::iota(cached_.begin(), cached_.end(), int64_t{0});
  }

  // Right after the prompt at first, then a token each.
  void Step() {
    if (started_) {
      cached_.push_back(num_tokens());
      ++generated_;
    }
    started_ = true;
    const auto event = PlanDestruction(
        settings_, {prompt_, generated_, num_cached(), destroyed_});
    if (!event.has_value()) return;
    ++num_events_;
    Destroy(*event);
  }

  int64_t num_tokens() const { return prompt_ + generated_; }
  int64_t num_cached() const { return static_cast<int64_t>(cached_.size()); }
  int64_t generated() const { return generated_; }
  int64_t destroyed() const { return destroyed_; }
  int64_t num_events() const { return num_events_; }
  const std::vector<int64_t>& cached() const { return cached_; }

 private:
  void Destroy(const DestructionEvent& event) {
    const EvictionInput whole = head_.Input(event.num_kept);
    EvictionInput input = whole;
    std::vector<const std::byte*> keys, values;
    std::vector<int64_t> sums;
    for (const int64_t position : cached_) {
      const auto i = static_cast<size_t>(position);
      keys.push_back(whole.keys.rows[i]);
      values.push_back(whole.values.rows[i]);
      sums.push_back(whole.cumulative[i]);
    }
    const std::vector<uint8_t> pinned =
        PinRows(event.pinned, cached_, num_tokens());
    input.positions = cached_;
    input.num_tokens = num_tokens();
    input.pinned = pinned;
    input.keys.rows = keys;
    input.values.rows = values;
    input.cumulative = sums;
    input.draws.event = static_cast<uint64_t>(num_events_);
    const auto decision = DecideEviction(event.policy, input);
    ASSERT_TRUE(decision.ok()) << decision.status();
    ASSERT_EQ(static_cast<int64_t>(decision->kept.size()), event.num_kept);
    destroyed_ += num_cached() - event.num_kept;
    cached_ = decision->kept;
  }

  DestructionSettings settings_;
  RandomHead head_;
  int64_t prompt_;
  std::vector<int64_t> cached_;
  bool started_ = false;
  int64_t generated_ = 0;
  int64_t destroyed_ = 0;
  int64_t num_events_ = 0;
};

std::vector<int64_t> Positions(int64_t begin, int64_t end) {
  std::vector<int64_t> positions(static_cast<size_t>(end - begin));
  std::iota(positions.begin(), positions.end(), begin);
  return positions;
}

class EveryPolicyChain : public ::testing::TestWithParam<std::string> {
 protected:
  DestructionSettings settings() const {
    return {.policy = *ParseDestructionPolicy(GetParam()).value(),
            .budget = {}};
  }
};

std::vector<std::string> Names() {
  std::vector<std::string> names = DestructionPolicyNames();
  names.erase(names.begin());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicyChain, ::testing::ValuesIn(Names()),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::replace(name.begin(), name.end(), '-', '0');
                           return name;
                         });

// The share that goes does not depend on who chooses.
TEST_P(EveryPolicyChain, TheHierarchysBoundsGiveThePublishedCounts) {
  DestructionSettings with_ratio = settings();
  with_ratio.budget.bounds = {300, kRatioOne};
  Chain chain(with_ratio, 40, 40 + 1422);

  for (int64_t t = 0; t <= 1422; ++t) chain.Step();

  EXPECT_EQ(chain.generated(), 1422);
  EXPECT_EQ(chain.num_events(), 20);
  EXPECT_EQ(chain.destroyed(), 327);
  EXPECT_EQ(chain.num_cached(), 40 + 1422 - 327);
  EXPECT_THAT(chain.cached(), IsSupersetOf(Positions(0, 44)));
  EXPECT_THAT(chain.cached(), IsSupersetOf(Positions(1462 - 128, 1462)));
}

TEST_P(EveryPolicyChain, TheCapHoldsAtEveryStep) {
  DestructionSettings capped = settings();
  capped.budget.bounds = {1000, 500};
  Chain chain(capped, 10, 10 + 1000);

  for (int64_t t = 0; t <= 1000; ++t) {
    chain.Step();
    ASSERT_LE(chain.destroyed(), ShareOf(500, chain.generated()));
  }

  EXPECT_EQ(chain.destroyed(), ShareOf(500, 960));
}

TEST_P(EveryPolicyChain, AFixedBudgetHoldsThePromptAndNeverMore) {
  DestructionSettings fixed = settings();
  fixed.budget = {.kind = BudgetKind::kFixed, .tokens = 256, .bounds = {}};
  Chain chain(fixed, 60, 60 + 700);
  ASSERT_TRUE(fixed.ValidateRequest(60).ok());
  int64_t most = 0;

  for (int64_t t = 0; t <= 700; ++t) {
    chain.Step();
    most = std::max(most, chain.num_cached());
    ASSERT_EQ(chain.num_cached() + chain.destroyed(), chain.num_tokens());
  }

  EXPECT_THAT(chain.cached(), IsSupersetOf(Positions(0, 60)));
  if (GetParam() == "snap-kv-prompt") {
    EXPECT_EQ(chain.num_events(), 0);
    return;
  }
  EXPECT_GE(chain.num_events(), 3);
  EXPECT_LT(most, 256 + 128);
}

TEST_P(EveryPolicyChain, AProportionalBudgetGrowsWithTheChain) {
  DestructionSettings half = settings();
  half.budget = {
      .kind = BudgetKind::kProportional, .ratio = 5000, .bounds = {}};
  Chain chain(half, 60, 60 + 700);

  for (int64_t t = 0; t <= 700; ++t) chain.Step();

  EXPECT_THAT(chain.cached(), IsSupersetOf(Positions(0, 60)));
  if (GetParam() == "snap-kv-prompt") return;
  EXPECT_GE(chain.num_cached(), 60 + 350 - 64);
  EXPECT_LE(chain.num_cached(), 60 + 350 + 128);
}

// Events in a prompt of 60 and 700 tokens after it.
struct EventsInAChain {
  std::array<int64_t, 3> fixed;  // of 255, 256 and 257 rows
  int64_t half;                  // of the tokens after the prompt
};

EventsInAChain ExpectedEvents(const std::string& policy) {
  if (policy == "snap-kv-prompt") return {{0, 0, 0}, 0};
  if (policy == "h2o" || policy == "streaming-llm") {
    return {{505, 504, 503}, 350};
  }
  if (policy == "tiers") return {{7, 7, 7}, 8};
  if (policy == "rkv-official" || policy == "snap-kv-rkv") {
    return {{4, 3, 3}, 5};
  }
  return {{7, 7, 7}, 5};
}

TEST_P(EveryPolicyChain, AnEventWaitsForItsBufferWhateverTheBudget) {
  const EventsInAChain expected = ExpectedEvents(GetParam());
  const auto events = [&](const DestructionBudget& budget) {
    DestructionSettings with_budget = settings();
    with_budget.budget = budget;
    Chain chain(with_budget, 60, 60 + 700);
    for (int64_t t = 0; t <= 700; ++t) chain.Step();
    return chain.num_events();
  };

  for (const int64_t tokens : {255, 256, 257}) {
    EXPECT_EQ(
        events({.kind = BudgetKind::kFixed, .tokens = tokens, .bounds = {}}),
        expected.fixed[static_cast<size_t>(tokens - 255)])
        << tokens;
  }
  EXPECT_EQ(
      events({.kind = BudgetKind::kProportional, .ratio = 5000, .bounds = {}}),
      expected.half);
}

TEST_P(EveryPolicyChain, NothingIsDestroyedByDefault) {
  EXPECT_FALSE(PlanDestruction(settings(), {100, 6400, 6500, 0}).has_value());
}

TEST(PlanDestructionTest, APromptAloneTriggersThePromptPolicyOnce) {
  const DestructionSettings settings{
      .policy = SnapKvPolicy::Prompt(),
      .budget = {.kind = BudgetKind::kFixed, .tokens = 320, .bounds = {}},
      .protect_prompt = false};

  const auto event = PlanDestruction(settings, {1000, 0, 1000, 0});

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->num_kept, 320);
  EXPECT_EQ(event->pinned.prompt_tokens, 0);
  EXPECT_FALSE(PlanDestruction(settings, {1000, 1, 321, 680}).has_value());
}

TEST(PlanDestructionTest, H2osRecentHalfIsOfWhatThePromptLeaves) {
  DestructionSettings settings{
      .policy = H2oPolicy{},
      .budget = {.kind = BudgetKind::kFixed, .tokens = 300, .bounds = {}}};
  const auto recent = [&] {
    const auto event = PlanDestruction(settings, {200, 192, 392, 0});
    return std::get<H2oPolicy>(event->policy).recent;
  };

  EXPECT_EQ(recent(), 50);
  settings.protect_prompt = false;
  EXPECT_EQ(recent(), 150);
  settings.budget = {.bounds = {1000, kRatioOne}};
  EXPECT_EQ(recent(), 0);
}

// N_v: places for large values beside the sinks that are not the prompt's.
TEST(PlanDestructionTest, VasesQuarterIsOfWhatThePromptLeaves) {
  DestructionSettings settings{
      .policy = VaseAttnVPolicy{},
      .budget = {.kind = BudgetKind::kFixed, .tokens = 300, .bounds = {}}};
  const auto places = [&](int64_t prompt) {
    const auto event =
        PlanDestruction(settings, {prompt, 364 - prompt, 364, 0});
    const std::vector<int64_t> positions = Positions(0, 364);
    EvictionInput input;
    input.positions = positions;
    input.num_tokens = 364;
    input.num_kept = event->num_kept;
    return NumByMeasure(event->policy, input);
  };

  EXPECT_EQ(places(200), 25);
  EXPECT_EQ(places(3), 74 - 1);
  settings.protect_prompt = false;
  EXPECT_EQ(places(200), 75 - 4);
}

// The prompt takes more than a quarter of the budget; what is beside it is not
// the large values' alone.
TEST(PlanDestructionTest, VaseDrawsBesideAProtectedPrompt) {
  const DestructionSettings settings{
      .policy = VaseAttnVPolicy{},
      .budget = {.kind = BudgetKind::kFixed, .tokens = 300, .bounds = {}}};
  const RandomHead head(7, 364, kDim, 1);
  const auto event = PlanDestruction(settings, {200, 164, 364, 0});
  ASSERT_TRUE(event.has_value());
  const auto kept = [&](uint64_t seed) {
    EvictionInput input = head.Input(event->num_kept);
    const std::vector<uint8_t> pinned =
        PinRows(event->pinned, input.positions, input.num_tokens);
    input.pinned = pinned;
    input.draws.seed = seed;
    const auto decision = DecideEviction(event->policy, input);
    EXPECT_TRUE(decision.ok()) << decision.status();
    return decision.ok() ? decision->kept : std::vector<int64_t>();
  };

  EXPECT_NE(kept(1), kept(2));
}

TEST(PlanDestructionTest, ABudgetThatThePromptFillsIsRefusedBeforehand) {
  DestructionSettings settings{
      .policy = RandomPolicy{},
      .budget = {.kind = BudgetKind::kFixed, .tokens = 256, .bounds = {}}};

  EXPECT_TRUE(settings.ValidateRequest(191).ok());
  EXPECT_THAT(std::string(settings.ValidateRequest(192).message()),
              HasSubstr("a budget of 256 tokens cannot hold a protected prompt "
                        "of 192, 64 that always stay, and one more"));
  settings.protect_prompt = false;
  EXPECT_TRUE(settings.ValidateRequest(5000).ok());
}

TEST(PlanDestructionTest, APromptPolicyThatMayNotTouchThePromptIsRefused) {
  DestructionSettings settings{
      .policy = SnapKvPolicy::Prompt(),
      .budget = {.kind = BudgetKind::kFixed, .tokens = 256, .bounds = {}}};
  EXPECT_THAT(std::string(settings.Validate().message()),
              HasSubstr("give --protect-prompt=false"));
  settings.budget = {
      .kind = BudgetKind::kProportional, .ratio = 5000, .bounds = {}};
  EXPECT_EQ(settings.Validate().code(), absl::StatusCode::kInvalidArgument);
  settings.protect_prompt = false;
  EXPECT_TRUE(settings.Validate().ok());
  // The hierarchy's schedule goes on behind the prompt.
  settings = {.policy = SnapKvPolicy::Prompt(), .budget = {}};
  EXPECT_TRUE(settings.Validate().ok());
}

TEST(PlanDestructionTest, BadSettingsAreNamed) {
  DestructionSettings settings{.policy = RkvPolicy{}, .budget = {}};
  EXPECT_TRUE(settings.Validate().ok());
  settings.interval = 0;
  EXPECT_THAT(std::string(settings.Validate().message()),
              HasSubstr("interval is 0"));
  settings = {.policy = RkvPolicy{.window = {}, .lambda = -1}, .budget = {}};
  EXPECT_THAT(std::string(settings.Validate().message()),
              HasSubstr("lambda is -1, must lie in [0, 10000]"));
}

// The policy pins its window whatever the hierarchy's: both must find room.
TEST(PlanDestructionTest, AWindowLongerThanTheHierarchysIsNotCountedAsFree) {
  DestructionSettings settings{.policy = SnapKvPolicy::Vase(), .budget = {}};
  settings.budget.bounds = {.per_event_ratio = 10000, .cumulative_cap = 10000};
  settings.interval = 16;
  settings.recent = 32;

  const auto event = PlanDestruction(
      settings,
      {.prompt_tokens = 70, .generated = 96, .cached = 166, .destroyed = 0});

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->num_kept, 70 + 4 + 64);
}

}  // namespace
}  // namespace farkv
