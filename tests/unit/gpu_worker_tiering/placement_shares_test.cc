// Stripes, admission shares and the checks of options.
#include <set>

#include "gpu_worker/tiering/admission.h"
#include "gpu_worker/tiering/stripes.h"
#include "gpu_worker/tiering/tiering_options.h"
#include "gtest/gtest.h"
#include "harness.h"

namespace farkv {
namespace {

const std::vector<std::string> kNodes = {"a", "b", "c"};

TEST(StripesTest, LosingANodeKeepsTheOrderOfTheOthers) {
  for (int i = 0; i < 50; ++i) {
    const SessionId session = SessionId::Random();
    std::vector<int> without;
    for (int node : NodeOrder(session, kNodes)) {
      if (node != 2) without.push_back(node);
    }

    EXPECT_EQ(NodeOrder(session, std::vector<std::string>{"a", "b"}), without);
  }
}

TEST(StripesTest, SessionsAreSpreadOverTheNodes) {
  std::vector<int> count(3);
  for (int i = 0; i < 300; ++i) {
    ++count[static_cast<size_t>(
        NodeOrder(SessionId::Random(), kNodes).front())];
  }

  for (int c : count) EXPECT_GT(c, 50);
}

TEST(StripesTest, ASequenceStaysOnItsNodeWithoutSpread) {
  const std::vector<int> order = {2, 0, 1};

  for (int page = 0; page < 100; ++page) {
    EXPECT_EQ(NodeOfPage(order, page, 1024, false, 0), 2);
    EXPECT_EQ(NodeOfPage(order, page, 1024, false, 1), 0);
  }
}

TEST(StripesTest, WithSpreadStripesTakeTurns) {
  const std::vector<int> order = {2, 0, 1};

  EXPECT_EQ(NodeOfPage(order, 15, 1024, true, 0), 2);
  EXPECT_EQ(NodeOfPage(order, 16, 1024, true, 0), 0);
  EXPECT_EQ(NodeOfPage(order, 47, 1024, true, 0), 1);
  EXPECT_EQ(NodeOfPage(order, 48, 1024, true, 0), 2);
}

TEST(AdmissionTest, WithoutNodesTheWholeContextIsPromised) {
  EXPECT_EQ(ShareInSets(TestSpec(64, 100, 1000), false), 16);
  EXPECT_EQ(ShareInSets(TestSpec(1, 100, 1000), false), 1000);
}

TEST(AdmissionTest, WithNodesThePlannedPartIsPromised) {
  SequenceSpec spec = TestSpec(1, 100, 10000);
  const auto& p = spec.placement;
  const int64_t guarded = 100 + p.sinks + p.recent;
  const int64_t planned = (10000 - guarded) * 3000 / 10000;

  EXPECT_EQ(ShareInSets(spec, true),
            guarded + planned + kPageTokens + 2 * p.interval + 4);
  spec.placement.prompt_in_t0 = false;
  EXPECT_LT(ShareInSets(spec, true),
            guarded + planned + kPageTokens + 2 * p.interval + 4);
  EXPECT_EQ(ShareInSets(TestSpec(64, 100, 120), true), 2);
}

TEST(TieringOptionsTest, WhatCannotBeMeantIsRefusedByItsFlag) {
  const auto refused = [](auto change, const char* flag) {
    TieringOptions options;
    change(options);
    const absl::Status status = options.Validate();
    EXPECT_FALSE(status.ok()) << flag;
    EXPECT_NE(status.message().find(flag), absl::string_view::npos) << status;
  };

  EXPECT_TRUE(TieringOptions().Validate().ok());
  refused([](auto& o) { o.granularity = 32; }, "--granularity is 32");
  refused([](auto& o) { o.stripe_tokens = 96; }, "--stripe is 96");
  refused([](auto& o) { o.lease = absl::Milliseconds(1); }, "--lease");
  refused([](auto& o) { o.heartbeat = o.lease; }, "--heartbeat");
  refused([](auto& o) { o.cold = ColdMode::kMap; }, "--map-dir");
  refused([](auto& o) { o.t0_bytes = 0; }, "--t0-bytes");
}

}  // namespace
}  // namespace farkv
