// Sizes of a plan against numbers worked out by hand, and against each other.
#include "common/plan/sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/cold_bytes.h"
#include "common/plan/t0_share.h"
#include "tests/unit/plan/qwen3_4b.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kGiB = uint64_t{1} << 30;

Sizes MustSize(const Workload& workload) {
  const auto sizes = SizesOf(Qwen3(), workload);
  EXPECT_TRUE(sizes.ok()) << sizes.status();
  return sizes.ok() ? *sizes : Sizes();
}

std::string Refusal(const Workload& workload,
                    const ModelShape& shape = Qwen3()) {
  const auto sizes = SizesOf(shape, workload);
  EXPECT_TRUE(absl::IsInvalidArgument(sizes.status())) << sizes.status();
  return std::string(sizes.status().message());
}

// A layer: 2 * 2560 * (32 + 8) * 128 = 26,214,400 of attention and 3 * 2560 *
// 9728 = 74,711,040 of feed-forward; 36 of them are 3,633,315,840. The head:
// 2560 * 151,936 = 388,956,160.
TEST(SizingTest, AStepMultipliesWithEveryWeightButTheEmbeddings) {
  EXPECT_EQ(Qwen3().NumProductWeights(), 4'022'272'000);
}

// 36 layers * 8 heads * 2 * 128 * 2 B = 147,456 B; times 16,384.
TEST(SizingTest, ATokenHasAKeyAndAValueOfEveryLayerAndHead) {
  const Sizes sizes = MustSize(Example());

  EXPECT_EQ(sizes.token_bytes, 147'456);
  EXPECT_EQ(sizes.sequence_bytes, 2'415'919'104);
}

// Groups of 64: the prompt fills 16, the sinks lie in the next, the last 128
// tokens in two: 19 groups, 1,216 tokens, are protected. Of the other 15,168
// tokens 0.3 are 4,550, which is 71 whole groups, 4,544 tokens.
TEST(SizingTest, TheTiersAreThoseOfAPlacementPlan) {
  const Sizes sizes = MustSize(Example());

  EXPECT_EQ(sizes.split.protected_tokens, 1'216);
  EXPECT_EQ(sizes.split.t0, 5'760);
  EXPECT_EQ(sizes.split.t1, 10'624);
  EXPECT_EQ(sizes.split.t2, 0);
  EXPECT_EQ(sizes.split.cold_pages, 166);
  EXPECT_EQ(sizes.step.own_tokens, 5'760);
}

// A page of a layer is 64 * 8 rows of 512 B, 262,144 B, and 2,048 B of
// checksums on the wire. 36 layers * 166 pages = 5,976 of them.
TEST(SizingTest, AStepReadsEveryColdPageOfEveryLayer) {
  const Sizes sizes = MustSize(Example());

  EXPECT_EQ(sizes.step.mapped_bytes, uint64_t{5'976} * 262'144);
  EXPECT_EQ(sizes.step.fetch_bytes, uint64_t{5'976} * 264'192);
  EXPECT_EQ(sizes.step.attend_bytes, sizes.step.mapped_bytes);
  EXPECT_EQ(sizes.step.attend_rows, 5'976 * 512);
  EXPECT_EQ(sizes.step.layer_fetch_bytes, uint64_t{166} * 262'144);
}

// Per layer: queries 32 * 256 B, 256 B of framing, 24 B for each of 166 pages,
// and for each subtree m, l and O of 32 heads, 32 * 130 * 4 = 16,640 B.
TEST(SizingTest, APushdownSendsQueriesAndGetsSubtrees) {
  const Sizes sizes = MustSize(Example());

  ASSERT_GT(sizes.step.subtrees, 0);
  EXPECT_LT(sizes.step.subtrees, 166);
  EXPECT_EQ(sizes.step.message_bytes,
            36 * (8'192 + 256 + 3'984 +
                  static_cast<uint64_t>(sizes.step.subtrees) * 16'640));
}

// T2 of 8 bits, a head: key scales and minima 2 * 256 B, those of values 2 *
// 512 B, codes 2 * 8,192 B, 64 B of slots, 8 exact rows of 512 B: 22,080 B, and
// 176,640 B for 8 heads. Half of 10,624 tokens are 83 pages.
TEST(SizingTest, CompressedPagesAreReadAsTheyLie) {
  Workload workload = Example();
  workload.t2_ratio = 5000;

  const Sizes sizes = MustSize(workload);

  EXPECT_EQ(sizes.split.t2_pages, 83);
  EXPECT_EQ(sizes.split.t2, 5'312);
  EXPECT_EQ(sizes.split.t0 + sizes.split.t1 + sizes.split.t2, 16'384);
  EXPECT_EQ(sizes.step.mapped_bytes, uint64_t{36} * 83 * (262'144 + 176'640));
  EXPECT_EQ(sizes.step.fetch_bytes, uint64_t{36} * 83 * (264'192 + 176'640));
}

// T1: header 64 + 264 * 8 = 2,176, payload 262,144, rounded up to 65 * 4,096.
// T2: 2,176 + 176,640 rounded up to 44 * 4,096. A slab holds 252 or 372 pages.
TEST(SizingTest, NodesHoldWholePagesBelowTheWatermark) {
  Workload workload = Example();
  workload.t2_ratio = 5000;
  workload.batch = 3;

  const Sizes sizes = MustSize(workload);

  EXPECT_EQ(sizes.t1_page_bytes, 266'240);
  EXPECT_EQ(sizes.t2_page_bytes, 180'224);
  EXPECT_EQ(sizes.pages, 256);
  // 3 * 36 * 173 = 18,684 pages, 4,974,428,160 B; 0.95 slabs are 63,753,420 B.
  EXPECT_EQ(sizes.t1_bytes, uint64_t{18'684} * 266'240);
  EXPECT_EQ(sizes.t1_pool_bytes, uint64_t{79 + 1} << 26);
  // 3 * 36 * 83 = 8,964 pages, 1,615,527,936 B.
  EXPECT_EQ(sizes.t2_bytes, uint64_t{8'964} * 180'224);
  EXPECT_EQ(sizes.t2_pool_bytes, uint64_t{26 + 1} << 26);
}

TEST(SizingTest, EachNodeIsAsLargeAsTheOneThatHasMost) {
  Workload workload = Example();
  workload.batch = 3;
  workload.nodes = 2;

  const Sizes sizes = MustSize(workload);

  EXPECT_EQ(sizes.sequences_per_node, 2);
  // 2 * 36 * 256 = 18,432 pages, 4,907,335,680 B: 77 slabs and one, twice.
  EXPECT_EQ(sizes.t1_pool_bytes, uint64_t{2 * (77 + 1)} << 26);
  workload.replicas = 2;
  EXPECT_EQ(MustSize(workload).t1_bytes, 2 * sizes.t1_bytes);
}

// 1,156 protected tokens, 0.3 of the other 15,228, a page and two intervals:
// 5,916 tokens, 93 groups and four for their edges. A set of lines has 36 *
// 262,144 B.
TEST(SizingTest, AsManySequencesFitAsTheWorkerAdmits) {
  Workload workload = Example();
  workload.batch = 64;
  workload.t0_bytes = 40 * kGiB;

  const Sizes sizes = MustSize(workload);

  EXPECT_EQ(sizes.t0_share_bytes, uint64_t{97} * 9'437'184);
  EXPECT_EQ(sizes.fitting, 46);  // 46.9
  EXPECT_EQ(sizes.running, 46);
  EXPECT_EQ(sizes.t0_tokens, 4551 * 64);
}

TEST(SizingTest, WithoutAShareT0TakesWhatItCan) {
  Workload workload = Example();
  workload.hbm_ratio = std::nullopt;
  workload.batch = 32;
  workload.t0_bytes = 40 * kGiB;

  const Sizes sizes = MustSize(workload);

  EXPECT_GT(sizes.hbm_ratio, 3000);
  EXPECT_EQ(sizes.running, 32);
  EXPECT_LE(32 * sizes.t0_share_bytes, 40 * kGiB);
  workload.hbm_ratio = sizes.hbm_ratio + 50;  // a line more for each
  EXPECT_LT(MustSize(workload).fitting, 32);
}

TEST(SizingTest, T0ThatHoldsEverythingLeavesNothingCold) {
  Workload workload = Example();
  workload.hbm_ratio = std::nullopt;
  workload.t0_bytes = 40 * kGiB;

  const Sizes sizes = MustSize(workload);

  EXPECT_EQ(sizes.hbm_ratio, 10'000);
  EXPECT_EQ(sizes.split.t0, 16'384);
  EXPECT_EQ(sizes.step.fetch_bytes, 0);
  EXPECT_EQ(sizes.step.message_bytes, 0);
}

TEST(SizingTest, T0ForNotOneSequenceIsRefusedWithBothSizes) {
  Workload workload = Example();
  workload.t0_bytes = 64 << 20;

  const auto sizes = SizesOf(Qwen3(), workload);

  EXPECT_TRUE(absl::IsResourceExhausted(sizes.status()));
  EXPECT_THAT(std::string(sizes.status().message()),
              AllOf(HasSubstr("64MiB"), HasSubstr("873MiB")));
}

TEST(SizingTest, MoreT0NeverLeavesMoreCold) {
  for (const int granularity : {64, 16, 1}) {
    Workload workload = Example();
    workload.hbm_ratio = std::nullopt;
    workload.placement.granularity = granularity;
    workload.tokens = 4'000;
    workload.batch = 7;
    ColdStep before;
    int64_t cold = INT64_MAX;
    before.fetch_bytes = before.attend_bytes = UINT64_MAX;
    for (uint64_t gib = 2; gib <= 5; ++gib) {
      workload.t0_bytes = gib * kGiB;
      const Sizes sizes = MustSize(workload);
      EXPECT_LE(sizes.step.fetch_bytes, before.fetch_bytes);
      EXPECT_LE(sizes.step.attend_bytes, before.attend_bytes);
      EXPECT_LE(sizes.split.t1, cold);
      before = sizes.step;
      cold = sizes.split.t1;
    }
    EXPECT_EQ(cold, 0) << granularity;
  }
}

TEST(SizingTest, EveryLengthIsSplitWhole) {
  for (const int64_t tokens : {1, 63, 64, 65, 1'025, 4'095, 4'097, 10'001}) {
    Workload workload = Example();
    workload.tokens = tokens;
    workload.prompt_tokens = 1;
    workload.hbm_ratio = 0;
    workload.t2_ratio = 9'000;
    const Sizes sizes = MustSize(workload);
    const TierSplit& split = sizes.split;
    EXPECT_EQ(split.t0 + split.t1 + split.t2, tokens);
    EXPECT_EQ(sizes.pages, (tokens + 63) / 64);
    EXPECT_LE(split.t2_pages, split.cold_pages);
  }
}

TEST(SizingTest, WhatCannotBeIsRefusedNamingFieldAndRange) {
  const auto with = [](auto change) {
    Workload workload = Example();
    change(workload);
    return Refusal(workload);
  };
  EXPECT_THAT(with([](Workload& w) { w.batch = 0; }),
              HasSubstr("batch is 0, must lie in [1, 65536]"));
  EXPECT_THAT(with([](Workload& w) { w.tokens = 0; }),
              HasSubstr("tokens is 0"));
  EXPECT_THAT(with([](Workload& w) { w.tokens = 1'000; }),
              HasSubstr("prompt_tokens is 1024, must lie in [1, 1000]"));
  EXPECT_THAT(with([](Workload& w) { w.hbm_ratio = 10'001; }),
              HasSubstr("hbm_ratio is 10001"));
  EXPECT_THAT(with([](Workload& w) { w.t2_bits = 6; }),
              HasSubstr("t2_bits is 6, must be 8 or 4"));
  EXPECT_THAT(with([](Workload& w) { w.placement.granularity = 32; }),
              HasSubstr("granularity is 32"));
  EXPECT_THAT(with([](Workload& w) { w.replicas = 2; }),
              HasSubstr("replicas is 2, must lie in [1, 1]"));
  ModelShape shape = Qwen3();
  shape.num_query_heads = 30;
  EXPECT_THAT(Refusal(Example(), shape),
              HasSubstr("num_query_heads is 30, not a multiple"));
  shape = Qwen3();
  shape.head_dim = 100;
  EXPECT_THAT(Refusal(Example(), shape), HasSubstr("head_dim is 100"));
}

// 256 heads of 512 in fp32: 64 rows of 1 MiB, and the header.
TEST(SizingTest, APageThatNoNodeHoldsIsRefusedWithBothSizes) {
  ModelShape shape = Qwen3();
  shape.num_query_heads = shape.num_kv_heads = 256;
  shape.head_dim = 512;
  Workload workload = Example();
  workload.kv_dtype = DType::kF32;

  EXPECT_THAT(
      Refusal(workload, shape),
      AllOf(HasSubstr("a page of one layer takes"), HasSubstr("67108864")));
}

}  // namespace
}  // namespace farkv
