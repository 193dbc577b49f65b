#include "gpu_worker/service/tier_options_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace farkv {
namespace {

using ::testing::HasSubstr;
using worker::v1::TierOptions;

class TierOptionsCodecTest : public ::testing::Test {
 protected:
  // What the worker's flags allow.
  void Allow(const DestructionBudget& budget) {
    options_.destruction =
        DestructionSettings{.policy = RecencyPolicy{}, .budget = budget};
  }
  absl::Status Read() {
    request_ = GenerationRequest();
    return ReadTierOptions(tiers_, options_, request_);
  }
  std::string Refusal() {
    const absl::Status status = Read();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  EngineOptions options_;
  TierOptions tiers_;
  GenerationRequest request_;
};

constexpr DestructionBudget kBounds = {
    .bounds = {.per_event_ratio = 300, .cumulative_cap = 1000}};
constexpr DestructionBudget kFixed = {
    .kind = BudgetKind::kFixed, .tokens = 512, .bounds = {}};

TEST_F(TierOptionsCodecTest, ARequestThatSaysNothingHasTheWorkersDefault) {
  Allow(kBounds);
  ASSERT_TRUE(Read().ok());
  EXPECT_FALSE(request_.destruction.has_value());
  EXPECT_FALSE(request_.destroy_nothing);
}

TEST_F(TierOptionsCodecTest, NothingMayAlwaysBeDestroyed) {
  tiers_.set_eviction("none");
  ASSERT_TRUE(Read().ok());
  EXPECT_TRUE(request_.destroy_nothing);
  tiers_.set_budget_tokens(100);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.eviction is none"));
}

TEST_F(TierOptionsCodecTest, WhereTheWorkerDestroysNothingNoRequestDoes) {
  tiers_.set_eviction("vase-dkv");
  EXPECT_THAT(Refusal(), HasSubstr("--eviction is none"));
  tiers_.Clear();
  tiers_.set_per_event_ratio(0.01f);
  EXPECT_THAT(Refusal(), HasSubstr("--eviction is none"));
}

TEST_F(TierOptionsCodecTest, ARequestMayDestroyLessByAnyPolicy) {
  Allow(kBounds);
  tiers_.set_eviction("vase-attn-v");
  tiers_.set_per_event_ratio(0.02f);
  tiers_.set_cumulative_cap(0.1f);
  ASSERT_TRUE(Read().ok());
  const DestructionSettings& settings = *request_.destruction;
  EXPECT_TRUE(std::holds_alternative<VaseAttnVPolicy>(settings.policy));
  EXPECT_EQ(settings.budget.bounds.per_event_ratio, 200);
  EXPECT_EQ(settings.budget.bounds.cumulative_cap, 1000);
  EXPECT_TRUE(settings.protect_prompt);

  Allow(kFixed);
  tiers_.Clear();
  tiers_.set_budget_tokens(512);
  ASSERT_TRUE(Read().ok());
  EXPECT_TRUE(
      std::holds_alternative<RecencyPolicy>(request_.destruction->policy));
}

TEST_F(TierOptionsCodecTest, ARequestMayNotDestroyMoreThanTheWorkersFlagsSay) {
  Allow(kBounds);
  tiers_.set_per_event_ratio(0.04f);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.per_event_ratio is 400 per 10,000, "
                                   "this worker allows at most 300"));
  tiers_.Clear();
  tiers_.set_cumulative_cap(0.2f);
  EXPECT_THAT(Refusal(), HasSubstr("at most 1000"));
  tiers_.Clear();
  tiers_.set_budget_tokens(100000);
  EXPECT_THAT(Refusal(), HasSubstr("kind fixed; this worker's flags allow the "
                                   "kind bounds"));
  Allow(kFixed);
  tiers_.set_budget_tokens(511);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.budget_tokens is 511, this worker "
                                   "allows no less than 512"));
  Allow({.kind = BudgetKind::kProportional, .ratio = 5000, .bounds = {}});
  tiers_.Clear();
  tiers_.set_budget_ratio(0.4f);
  EXPECT_THAT(Refusal(), HasSubstr("no less than 5000"));
}

TEST_F(TierOptionsCodecTest, BadValuesAreNamed) {
  Allow(kBounds);
  tiers_.set_eviction("lru");
  EXPECT_THAT(Refusal(), HasSubstr("eviction is \"lru\""));
  tiers_.Clear();
  tiers_.set_per_event_ratio(1.5f);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.per_event_ratio is 1.5"));
  tiers_.Clear();
  tiers_.set_hbm_ratio(-1);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.hbm_ratio is -1"));
}

TEST_F(TierOptionsCodecTest, ARequestHasNoMoreOfT0ThanTheWorkersFlagsSay) {
  options_.placement.hbm_ratio = 3000;
  tiers_.set_hbm_ratio(0.3f);
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(request_.hbm_ratio, 3000);
  tiers_.set_hbm_ratio(0.31f);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.hbm_ratio is 3100 per 10,000, this "
                                   "worker allows at most 3000"));
}

TEST_F(TierOptionsCodecTest, PlacementAndT2AreTheRequestsWithinTheWorkers) {
  options_.tiering.t2_ratio = 5000;
  ASSERT_TRUE(Read().ok());
  EXPECT_FALSE(request_.placement.has_value());
  EXPECT_FALSE(request_.t2_ratio.has_value());
  tiers_.set_placement("recency");
  tiers_.set_t2_ratio(0.25f);
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(request_.placement, PlacementPolicy::kRecency);
  EXPECT_EQ(request_.t2_ratio, 2500);
  tiers_.set_t2_ratio(0.6f);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.t2_ratio is 6000 per 10,000, this "
                                   "worker allows at most 5000"));
  tiers_.Clear();
  tiers_.set_placement("lru");
  EXPECT_THAT(Refusal(), HasSubstr("tiers.placement is \"lru\""));
}

TEST_F(TierOptionsCodecTest, WhatAllRequestsShareIsRefusedWithTheReason) {
  const auto expect_unserved = [this](const char* field) {
    EXPECT_EQ(Read().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(Read().message()), HasSubstr(field));
    tiers_.Clear();
  };
  tiers_.set_cold("map");
  expect_unserved("tiers.cold is set; cold rows of all requests");
  tiers_.set_granularity(16);
  expect_unserved("tiers.granularity is set; the lines");
}

TEST_F(TierOptionsCodecTest, SelectionReadsNoLessThanTheWorkersOrEverything) {
  options_.selection = {.policy = SelectionPolicy::kQuest,
                        .budget_tokens = 256};
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(request_.selection->budget_tokens, 256);
  tiers_.set_budget_tokens(300);
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(request_.selection->budget_tokens, 300);
  EXPECT_FALSE(request_.destruction.has_value());
  tiers_.set_budget_tokens(255);
  EXPECT_THAT(Refusal(), HasSubstr("tiers.budget_tokens is 255, this worker "
                                   "allows no less than 256"));
  tiers_.Clear();
  tiers_.set_budget_ratio(0.5);
  EXPECT_THAT(Refusal(), HasSubstr("the other kind of budget"));
  tiers_.Clear();
  tiers_.set_selection("none");
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(request_.selection->policy, SelectionPolicy::kNone);
  tiers_.set_selection("gate");
  EXPECT_THAT(Refusal(), HasSubstr("tiers.selection is \"gate\""));
}

TEST_F(TierOptionsCodecTest, WhereTheWorkerReadsEverythingEveryRequestDoes) {
  tiers_.set_selection("quest");
  EXPECT_THAT(Refusal(), HasSubstr("--selection is none"));
}

TEST_F(TierOptionsCodecTest, ABudgetIsTheSelectionsWhereTheRequestHasOne) {
  Allow(kBounds);
  options_.selection = {.policy = SelectionPolicy::kQuest,
                        .budget_ratio = 2500};
  tiers_.set_budget_ratio(0.25);
  tiers_.set_eviction("h2o");
  tiers_.set_cumulative_cap(0.05f);
  ASSERT_TRUE(Read().ok()) << Read();
  EXPECT_EQ(request_.selection->budget_ratio, 2500);
  EXPECT_EQ(request_.destruction->budget.kind, BudgetKind::kBounds);
  EXPECT_EQ(request_.destruction->budget.bounds.cumulative_cap, 500);
  // Without one it is the eviction's, whose kind is another.
  tiers_.set_selection("none");
  EXPECT_THAT(Refusal(), HasSubstr("tiers.budget_ratio is set"));
}

}  // namespace
}  // namespace farkv
