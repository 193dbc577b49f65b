// Times of a plan against numbers worked out by hand, and how they move.
#include "common/plan/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/plan/qwen3_4b.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

// 8 GB of weights at 1 TB/s are 8 ms, a step's overhead 1 ms.
Rates Device() {
  Rates rates;
  rates.weight_bytes = 8'000'000'000;
  rates.weight_bytes_per_second = 1e12;
  rates.flops_per_second = 1e15;
  rates.attention_bytes_per_second = 1e12;
  rates.mapped_bytes_per_second = 50e9;
  rates.node_bytes_per_second = 200e9;
  rates.link_bytes_per_second = 25e9;
  rates.round_trip = absl::Microseconds(20);
  rates.overhead = absl::Milliseconds(1);
  return rates;
}

StepPlan MustPlan(const Workload& workload, const Rates& rates,
                  const ModeSettings& settings = {}) {
  const auto sizes = SizesOf(Qwen3(), workload);
  EXPECT_TRUE(sizes.ok()) << sizes.status();
  const auto plan = PlanStep(Qwen3(), *sizes, rates, settings);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

double Milliseconds(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

// 16,384 tokens of 147,456 B at 1 TB/s: 2.4159 ms.
TEST(StepTimeTest, TheFullCacheTakesWeightsAndAttention) {
  const ModeTime full = MustPlan(Example(), Device()).full;

  EXPECT_NEAR(Milliseconds(full.step), 1 + 8 + 2.4159, 1e-4);
  EXPECT_EQ(full.bottleneck, Bottleneck::kWeights);
  EXPECT_EQ(full.link_bytes, 0);
  EXPECT_NEAR(full.TokensPerSecond(1), 1e3 / 11.4159, 1e-3);
}

// 5,760 tokens in T0 are 849,346,560 B, 0.8493 ms; 10,624 on the map at 50 GB/s
// 1,566,572,544 B, 31.3315 ms.
TEST(StepTimeTest, AMapReadsColdRowsAtItsOwnRate) {
  const ModeTime map = MustPlan(Example(), Device()).map;

  EXPECT_NEAR(Milliseconds(map.step), 1 + 8 + 0.8493 + 31.3315, 1e-4);
  EXPECT_EQ(map.bottleneck, Bottleneck::kMap);
  EXPECT_EQ(map.link_bytes, 0);
}

// With checksums 1,578,811,392 B travel, 63.1525 ms at 25 GB/s: more than the
// 11.4159 ms behind which they could hide. At 400 GB/s they do.
TEST(StepTimeTest, APrefetchHidesBehindTheStep) {
  Rates rates = Device();
  const ModeTime late = MustPlan(Example(), rates).prefetch;
  rates.link_bytes_per_second = 400e9;
  const ModeTime hidden = MustPlan(Example(), rates).prefetch;

  EXPECT_EQ(late.link_bytes, 1'578'811'392);
  EXPECT_NEAR(Milliseconds(late.step), 63.1525, 1e-4);
  EXPECT_NEAR(Milliseconds(late.waits), 63.1525 - 11.4159, 1e-4);
  EXPECT_NEAR(Milliseconds(late.without_overlap), 63.1525 + 11.4159 + 0.36,
              1e-4);
  EXPECT_EQ(late.bottleneck, Bottleneck::kLink);
  EXPECT_NEAR(Milliseconds(hidden.step), 11.4159, 1e-4);
  EXPECT_EQ(hidden.waits, absl::ZeroDuration());
  EXPECT_EQ(hidden.bottleneck, Bottleneck::kWeights);
}

// Each layer is asked for two layers ahead: at 1 ms a round trip 36 layers take
// 18 ms, however fast the link.
TEST(StepTimeTest, APrefetchWaitsForItsRoundTrips) {
  Rates rates = Device();
  rates.link_bytes_per_second = 1e15;
  rates.round_trip = absl::Milliseconds(1);

  const ModeTime prefetch = MustPlan(Example(), rates).prefetch;

  EXPECT_NEAR(Milliseconds(prefetch.step), 18, 1e-2);
  EXPECT_EQ(prefetch.bottleneck, Bottleneck::kRoundTrips);
}

// Four sequences have 174,063,616 B of a layer, beside which 256 MiB have room
// for 94,371,840 B, 0.54217 of the next one. At 400 GB/s all cold rows take
// 15.7881 ms, of which 8.5599 hide behind 9 + 4 * 2.41592 ms. Eight have more
// of a layer than there is room, and nothing is asked for ahead.
TEST(StepTimeTest, APrefetchHidesWhatStagingHasRoomFor) {
  Workload workload = Example();
  workload.batch = 4;
  Rates rates = Device();
  rates.link_bytes_per_second = 400e9;
  const ModeTime four = MustPlan(workload, rates).prefetch;
  workload.batch = 8;
  const ModeTime eight = MustPlan(workload, rates).prefetch;

  EXPECT_NEAR(Milliseconds(four.step), 18.6637 + 15.7881 - 8.5599, 1e-3);
  EXPECT_NEAR(Milliseconds(eight.step), 9 + 8 * 2.41592 + 2 * 15.7881, 1e-3);
}

// 36 round trips of 20 us are 0.72 ms, 1,566,572,544 B at 200 GB/s 7.8329 ms;
// the worker's own leaves, 0.8493 ms, run meanwhile.
TEST(StepTimeTest, APushdownRunsBesideOwnLeaves) {
  const auto sizes = SizesOf(Qwen3(), Example());
  const double messages =
      static_cast<double>(sizes->step.message_bytes) / 25e9 * 1e3;

  const ModeTime push = MustPlan(Example(), Device()).pushdown;

  EXPECT_NEAR(Milliseconds(push.step), 1 + 8 + 0.72 + messages + 7.8329, 1e-4);
  EXPECT_NEAR(Milliseconds(push.without_overlap - push.step), 0.8493, 1e-4);
  EXPECT_EQ(push.bottleneck, Bottleneck::kWeights);
  EXPECT_EQ(push.link_bytes, sizes->step.message_bytes);
}

TEST(StepTimeTest, OwnLeavesThatTakeLongerHideThePushdown) {
  Rates rates = Device();
  rates.attention_bytes_per_second = 10e9;  // own leaves: 84.9347 ms

  const ModeTime push = MustPlan(Example(), rates).pushdown;

  EXPECT_NEAR(Milliseconds(push.step), 1 + 8 + 84.9347, 1e-3);
  EXPECT_EQ(push.waits, absl::ZeroDuration());
  EXPECT_EQ(push.bottleneck, Bottleneck::kAttention);
}

// 2 * 4,022,272,000 * 512 flops at 100 TFLOPS are 41.188 ms, weights 8 ms.
TEST(StepTimeTest, ALargeBatchIsBoundByComputing) {
  Workload workload = Example();
  workload.batch = 512;
  Rates rates = Device();
  rates.flops_per_second = 1e14;
  rates.attention_bytes_per_second = 1e15;

  const ModeTime full = MustPlan(workload, rates).full;

  EXPECT_NEAR(Milliseconds(full.step), 1 + 41.188 + 512 * 0.0024159, 1e-3);
  EXPECT_EQ(full.bottleneck, Bottleneck::kProducts);
}

TEST(StepTimeTest, EachSlowPartIsNamed) {
  Rates rates = Device();
  rates.round_trip = absl::Milliseconds(1);
  EXPECT_EQ(MustPlan(Example(), rates).pushdown.bottleneck,
            Bottleneck::kRoundTrips);
  rates = Device();
  rates.node_bytes_per_second = 20e9;
  EXPECT_EQ(MustPlan(Example(), rates).pushdown.bottleneck,
            Bottleneck::kNodeMemory);
  rates = Device();
  rates.overhead = absl::Milliseconds(50);
  EXPECT_EQ(MustPlan(Example(), rates).full.bottleneck, Bottleneck::kOverhead);
  rates = Device();
  rates.link_bytes_per_second = 1e9;
  EXPECT_EQ(MustPlan(Example(), rates).pushdown.bottleneck, Bottleneck::kLink);
}

// A token of T1 is 36 * 264,192 / 64 = 148,608 B on its way to a node: 14.86 s
// at 10 kB/s, when nothing is cold.
TEST(StepTimeTest, AStepIsNoShorterThanItsStores) {
  Workload workload = Example();
  workload.hbm_ratio = 10'000;
  Rates rates = Device();
  rates.link_bytes_per_second = 1e4;

  const StepPlan plan = MustPlan(workload, rates);

  EXPECT_NEAR(absl::ToDoubleSeconds(plan.pushdown.step), 14.8608, 1e-4);
  EXPECT_EQ(plan.pushdown.bottleneck, Bottleneck::kStores);
  EXPECT_NEAR(Milliseconds(plan.full.step), 11.4159, 1e-4);
}

// 166 pages of 262,144 B are 43.5 MB of a layer; 32 sequences have 1,392.5 MB,
// above 939.5 MB, 16 of them not.
TEST(StepTimeTest, APrefetchThatIsTooLargeReadsTheWeightsTwice) {
  Workload workload = Example();
  workload.batch = 32;
  Rates rates = Device();
  rates.link_bytes_per_second = 1e18;

  const ModeTime prefetch = MustPlan(workload, rates).prefetch;

  EXPECT_EQ(prefetch.parts, 2);
  EXPECT_NEAR(Milliseconds(prefetch.step), 2 * (1 + 8) + 32 * 2.41592, 1e-2);
  workload.nodes = 2;
  EXPECT_EQ(MustPlan(workload, rates).prefetch.parts, 1);
}

// 4,194,304 tokens with nothing in T0: some 17 GB of a layer.
TEST(StepTimeTest, OneSequenceCanBeTooLargeToFetch) {
  Workload workload = Example();
  workload.tokens = 1 << 22;
  workload.hbm_ratio = 0;

  const StepPlan plan = MustPlan(workload, Device());

  EXPECT_FALSE(plan.prefetch.possible);
  EXPECT_EQ(plan.prefetch.TokensPerSecond(1), 0);
  EXPECT_EQ(plan.chosen, StepMode::kPushdown);
}

TEST(StepTimeTest, AutoChoosesAsTheWorkerDoesAndSaysWhy) {
  Rates rates = Device();
  const StepPlan slow = MustPlan(Example(), rates);
  EXPECT_EQ(slow.chosen, StepMode::kPushdown);
  EXPECT_THAT(slow.reason, HasSubstr("rates: "));
  rates.link_bytes_per_second = 400e9;
  EXPECT_EQ(MustPlan(Example(), rates).chosen, StepMode::kPrefetch);

  EXPECT_EQ(MustPlan(Example(), Device(), {.mapped = true}).chosen,
            StepMode::kMap);
  const StepPlan bitwise =
      MustPlan(Example(), Device(), {.pushdown_allowed = false});
  EXPECT_EQ(bitwise.chosen, StepMode::kPrefetch);
  EXPECT_THAT(bitwise.reason, HasSubstr("exactness"));
  Workload full = Example();
  full.hbm_ratio = 10'000;
  EXPECT_EQ(MustPlan(full, Device()).chosen, StepMode::kFullCache);
}

// What has more of one thing is never slower.
TEST(StepTimeTest, MoreRateNeverTakesLonger) {
  double Rates::*const fields[] = {
      &Rates::weight_bytes_per_second,    &Rates::flops_per_second,
      &Rates::attention_bytes_per_second, &Rates::mapped_bytes_per_second,
      &Rates::node_bytes_per_second,      &Rates::link_bytes_per_second};
  for (const int64_t batch : {1, 5, 33}) {
    Workload workload = Example();
    workload.batch = batch;
    workload.t2_ratio = 2'000;
    for (double Rates::*const field : fields) {
      Rates rates = Device();
      rates.*field = 1e7;
      StepPlan before = MustPlan(workload, rates);
      for (int i = 0; i < 30; ++i) {
        rates.*field *= 1.7;
        const StepPlan plan = MustPlan(workload, rates);
        for (const StepMode mode : {StepMode::kFullCache, StepMode::kMap,
                                    StepMode::kPrefetch, StepMode::kPushdown}) {
          EXPECT_LE(plan.Of(mode).step, before.Of(mode).step)
              << StepModeName(mode) << " at " << rates.*field;
          if (plan.Of(mode).bottleneck == Bottleneck::kStores) continue;
          EXPECT_LE(plan.Of(mode).step,
                    plan.Of(mode).without_overlap + absl::Nanoseconds(1))
              << StepModeName(mode) << " at " << rates.*field;
        }
        before = plan;
      }
    }
  }
}

TEST(StepTimeTest, ARateThatIsNoneIsRefused) {
  const auto refusal = [](const Rates& rates) {
    const auto sizes = SizesOf(Qwen3(), Example());
    const auto plan = PlanStep(Qwen3(), *sizes, rates, {});
    EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
    return std::string(plan.status().message());
  };
  Rates rates = Device();
  rates.link_bytes_per_second = 0;
  EXPECT_THAT(refusal(rates), HasSubstr("link_bytes_per_second is 0"));
  rates = Device();
  rates.node_bytes_per_second = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal(rates), HasSubstr("node_bytes_per_second is inf"));
  rates = Device();
  rates.round_trip = -absl::Seconds(1);
  EXPECT_THAT(refusal(rates), HasSubstr("round_trip is -1s"));
  rates = Device();
  rates.weight_bytes = 0;
  EXPECT_THAT(refusal(rates), HasSubstr("weight_bytes is 0"));
}

}  // namespace
}  // namespace farkv
