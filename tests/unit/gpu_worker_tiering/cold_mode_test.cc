// The arithmetic of --cold=auto, with the figures of ALGORITHMS 12.3: Qwen3-4B,
// 36 layers, 4 KiB of K and V per token and layer, 32 query heads of 128.
#include "gpu_worker/tiering/cold_mode.h"

#include <vector>

#include "common/plan/cold_bytes.h"
#include "gpu_worker/tiering/step_meter.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

constexpr int kLayers = 36;
constexpr uint64_t kTokenBytes = 4096;
constexpr int kKvHeads = 8;

// Queries of 8 KiB out, one partial result of 16 KiB and 256 B back.
ColdWork Work(int64_t tokens) {
  ColdWork work;
  work.layers = kLayers;
  work.fetch_bytes = kLayers * kTokenBytes * static_cast<uint64_t>(tokens);
  work.attend_rows =
      uint64_t{kLayers} * kKvHeads * static_cast<uint64_t>(tokens);
  work.message_bytes = uint64_t{kLayers} * (8192 + 16384 + 256);
  return work;
}

double Milliseconds(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

constexpr double k400Gb = 50e9;
constexpr double k10Gb = 1.25e9;
// 200 GB/s, in rows of 512 bytes.
constexpr double kDramRows = 200e9 / (4096.0 / kKvHeads);

TEST(ColdModeTest, BytesBreakEvenAtSixTokens) {
  const NodeFigures link_only{k10Gb, absl::ZeroDuration(), 0};

  const ColdCosts six = CostsOf(Work(6), link_only);
  const ColdCosts seven = CostsOf(Work(7), link_only);

  EXPECT_LT(six.fetch, six.push);
  EXPECT_GT(seven.fetch, seven.push);
}

TEST(ColdModeTest, RoundTripsLieOnThePath) {
  ColdWork none = Work(0);
  none.message_bytes = 0;

  EXPECT_NEAR(
      Milliseconds(
          CostsOf(none, {k400Gb, absl::Microseconds(20), kDramRows}).push),
      0.72, 1e-6);
  EXPECT_NEAR(
      Milliseconds(
          CostsOf(none, {k400Gb, absl::Microseconds(100), kDramRows}).push),
      3.6, 1e-6);
}

TEST(ColdModeTest, ALongContextIsReadInPlaceFasterThanItTravels) {
  const NodeFigures figures{k400Gb, absl::Microseconds(20), kDramRows};

  const ColdCosts costs = CostsOf(Work(11500), figures);

  EXPECT_NEAR(Milliseconds(costs.fetch), 1.7e9 / 50e9 * 1e3, 0.5);
  EXPECT_NEAR(Milliseconds(costs.push), 0.72 + 8.5 + 0.02, 0.1);
  const StepTimes step = StepTimesOf(Work(11500), costs, {});
  EXPECT_TRUE(BetterPushedDown(step, false));
  EXPECT_TRUE(BetterPushedDown(step, true));
}

TEST(ColdModeTest, AFewHundredTokensStream) {
  const NodeFigures figures{k400Gb, absl::Microseconds(20), kDramRows};

  const StepTimes step =
      StepTimesOf(Work(200), CostsOf(Work(200), figures), {});

  EXPECT_LT(step.fetch, step.push);
  EXPECT_FALSE(BetterPushedDown(step, false));
  EXPECT_FALSE(BetterPushedDown(step, true));
}

// At 10 Gb/s the rows of 1,000 tokens take 118 ms, which a step of 150 ms
// hides; the round trips of a pushdown it cannot hide.
TEST(ColdModeTest, WhatTravelsWhileTheWorkerComputesCostsNothing) {
  const ColdWork work = Work(1000);
  const ColdCosts costs =
      CostsOf(work, {k10Gb, absl::Microseconds(100), kDramRows});
  const OwnTimes own{absl::Milliseconds(150), absl::Milliseconds(150), 1};

  const StepTimes step = StepTimesOf(work, costs, own);

  EXPECT_EQ(step.fetch, absl::Milliseconds(150));
  EXPECT_GT(step.push, absl::Milliseconds(153));
  EXPECT_FALSE(BetterPushedDown(step, false));
}

TEST(ColdModeTest, WhatCannotBeAskedForAheadIsWaitedFor) {
  ColdWork work = Work(1000);
  work.ahead = false;
  const ColdCosts costs =
      CostsOf(work, {k10Gb, absl::Microseconds(100), kDramRows});
  const OwnTimes own{absl::Milliseconds(150), absl::Milliseconds(150), 1};

  const StepTimes step = StepTimesOf(work, costs, own);

  EXPECT_GT(step.fetch, absl::Milliseconds(150 + 118 + 3));
  EXPECT_TRUE(BetterPushedDown(step, false));
}

TEST(ColdModeTest, WhatOwnLeavesHideCostsNothing) {
  const ColdWork work = Work(0);
  const ColdCosts costs{absl::Milliseconds(1), absl::Milliseconds(40)};
  OwnTimes own{absl::Milliseconds(30), absl::Milliseconds(20), 1};
  EXPECT_EQ(StepTimesOf(work, costs, own).push, absl::Milliseconds(60));

  own.visible_push = 0.25;

  EXPECT_EQ(StepTimesOf(work, costs, own).push, absl::Milliseconds(30));
}

TEST(ColdModeTest, AChangeMustSaveATenth) {
  const auto step = [](int fetch, int push) {
    return StepTimes{absl::Milliseconds(fetch), absl::Milliseconds(push)};
  };
  EXPECT_FALSE(BetterPushedDown(step(100, 91), false));
  EXPECT_TRUE(BetterPushedDown(step(100, 89), false));
  EXPECT_TRUE(BetterPushedDown(step(91, 100), true));
  EXPECT_FALSE(BetterPushedDown(step(89, 100), true));
}

TEST(ColdModeTest, OnlyWhatIsCloseIsTried) {
  const auto step = [](int fetch, int push) {
    return StepTimes{absl::Milliseconds(fetch), absl::Milliseconds(push)};
  };
  EXPECT_TRUE(WorthATry(step(100, 149), false));
  EXPECT_FALSE(WorthATry(step(100, 151), false));
  EXPECT_TRUE(WorthATry(step(149, 100), true));
  EXPECT_FALSE(WorthATry(step(151, 100), true));
}

TEST(ColdModeTest, WithoutALinkRateBothAreInfinite) {
  const ColdCosts costs = CostsOf(Work(100), NodeFigures{});
  EXPECT_EQ(costs.fetch, absl::InfiniteDuration());
  EXPECT_EQ(costs.push, absl::InfiniteDuration());
  EXPECT_FALSE(BetterPushedDown({costs.fetch, costs.push}, false));
}

// One node and a step of 10 ms beside it.
class ModeChoiceTest : public ::testing::Test {
 protected:
  ColdChoice Next() { return choice_.Next(work_, figures_, own_, now_); }
  void SetLink(double rate) { figures_.link_bytes_per_second = rate; }

  const ColdWork work_ = Work(1000);
  NodeFigures figures_{k10Gb, absl::Microseconds(100), kDramRows};
  const OwnTimes own_{absl::Milliseconds(10), absl::Milliseconds(10), 1};
  absl::Time now_ = absl::UnixEpoch();
  ModeChoice choice_;
};

TEST_F(ModeChoiceTest, WithoutALinkRateRowsAreFetched) {
  SetLink(0);
  EXPECT_EQ(Next().mode, ColdMode::kPrefetch);
  EXPECT_EQ(Next().reason, ColdReason::kUnmeasured);
}

TEST_F(ModeChoiceTest, ItFollowsTheLinkWithoutAFlutter) {
  figures_.round_trip = absl::Milliseconds(1);
  SetLink(12.5e6);
  EXPECT_EQ(Next().mode, ColdMode::kPushdown);
  SetLink(50e9);
  EXPECT_EQ(Next().mode, ColdMode::kPrefetch);
  // 147 MB in 48 ms: pushing would take 46 + 1 ms or so.
  SetLink(3.07e9);
  EXPECT_EQ(Next().mode, ColdMode::kPrefetch);
  SetLink(12.5e6);
  EXPECT_EQ(Next().mode, ColdMode::kPushdown);
  SetLink(3.07e9);
  EXPECT_EQ(Next().mode, ColdMode::kPushdown);
}

TEST_F(ModeChoiceTest, TheCloseOtherModeIsTriedForTwoStepsWhenItIsOld) {
  // 147 MB in 14.7 ms hide behind 10 ms but for 4.7; pushing takes 14.5 ms.
  SetLink(10e9);
  int trials = 0;
  for (int i = 0; i < 10; ++i) {
    const ColdChoice choice = Next();
    trials += choice.reason == ColdReason::kTrial ? 1 : 0;
    EXPECT_EQ(choice.mode == ColdMode::kPushdown,
              choice.reason == ColdReason::kTrial);
  }
  EXPECT_EQ(trials, 2);
  now_ += absl::Seconds(19);
  EXPECT_EQ(Next().reason, ColdReason::kRates);
  now_ += absl::Seconds(2);
  EXPECT_EQ(Next().reason, ColdReason::kTrial);
  EXPECT_EQ(Next().reason, ColdReason::kTrial);
  EXPECT_EQ(Next().reason, ColdReason::kRates);
}

TEST_F(ModeChoiceTest, AModeThatIsFarOffIsNeverTried) {
  SetLink(12.5e6);  // 12 s of rows
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Next().reason, ColdReason::kRates);
    now_ += absl::Minutes(1);
  }
}

TEST(StepMeterTest, TheModesAreComparedWhereOneFollowsTheOther) {
  const auto step = [](bool pushes, int took, int waits) {
    MeteredStep made;
    made.pushes = pushes;
    made.took = absl::Milliseconds(took);
    (pushes ? made.attend_waits : made.fetch_waits) = absl::Milliseconds(waits);
    if (pushes) made.attends_took = absl::Milliseconds(2 * waits);
    return made;
  };
  StepMeter meter;
  for (int i = 0; i < 3; ++i) meter.Note(step(false, 50, 10));
  EXPECT_EQ(meter.Get().fetching, absl::Milliseconds(40));
  EXPECT_EQ(meter.Get().pushing, absl::Milliseconds(40));

  for (int i = 0; i < 2; ++i) meter.Note(step(true, 25, 5));

  EXPECT_NEAR(Milliseconds(meter.Get().fetching), 40, 1e-3);
  EXPECT_EQ(meter.Get().pushing, absl::Milliseconds(20));
  EXPECT_EQ(meter.Get().visible_push, 0.5);

  // The batch has grown meanwhile.
  for (int i = 0; i < 5; ++i) meter.Note(step(true, 65, 5));

  EXPECT_EQ(meter.Get().pushing, absl::Milliseconds(60));
  EXPECT_NEAR(Milliseconds(meter.Get().fetching), 120, 1e-3);
}

TEST(ColdModeTest, ThePlanKnowsTheBoundsOfAPrefetch) {
  EXPECT_EQ(TieringOptions().max_layer_fetch_bytes, kMaxLayerFetchBytes);
  EXPECT_EQ(TieringOptions().staging_bytes, kStagingBytes);
  EXPECT_EQ(TieringOptions().prefetch_layers, kPrefetchLayers);
}

TEST(ColdModeTest, SubtreesAreTheMaximalAlignedOnes) {
  EXPECT_EQ(CountSubtrees({}), 0);
  EXPECT_EQ(CountSubtrees(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}), 1);
  // {1}, {2,3}, {4..7}, {8}
  EXPECT_EQ(CountSubtrees(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}), 4);
  EXPECT_EQ(CountSubtrees(std::vector<int32_t>{0, 2, 4, 6}), 4);
}

}  // namespace
}  // namespace farkv
