// T2 against whole memory nodes over UCX: pages are compressed, read in every
// way with the same bits, and near to what full precision gives.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "gpu_worker/tiering/node_access.h"
#include "gpu_worker/tiering/t2_choice.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "tests/testing/in_process_node.h"

namespace farkv {
namespace {

constexpr int64_t kPrompt = 150;
constexpr int64_t kTotal = 520;

struct Outcome {
  std::vector<std::vector<std::vector<float>>> outputs;
  std::vector<int64_t> scores;
  SequenceTierStats stats;
  int t2_positions = 0;  // of the tier map
};

struct Way {
  ColdMode mode = ColdMode::kPrefetch;
  int nodes = 1;
  int32_t t2_ratio = 10000;
  int bits = 8;
  uint64_t t2_bytes = uint64_t{64} << 20;
  int32_t hbm_ratio = 3000;
  StoredRowsFilter filter = {};
  std::optional<int32_t> sequence_t2_ratio = {};
  PlacementPolicy placement = PlacementPolicy::kCumulativeAttention;
};

// Generates kTotal tokens; stores and moves are awaited after every step, so
// that each run compresses the same pages at the same step. Promotions are not:
// which T2 rows have a line already differs from run to run, their bits do not.
void Generate(const Way& way, Outcome& run) {
  const KvGeometry geometry = TestGeometry();
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  const std::unique_ptr<Stream> stream = device->NewStream();
  TieringOptions options;
  options.granularity = 16;
  options.t0_bytes = uint64_t{1} << 20;
  options.heartbeat = absl::Seconds(5);
  options.cold = way.mode;
  options.stripe_tokens = 64;
  options.spread = true;
  options.t2_ratio = way.t2_ratio;
  options.t2_bits = way.bits;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < way.nodes; ++i) {
    NodeOptions node = InProcessNodeOptions("n" + std::to_string(i));
    node.t2_bytes = way.t2_bytes;
    nodes.push_back(StartInProcessNode(node, nullptr).value());
    options.memory_nodes.push_back(
        "127.0.0.1:" + std::to_string(nodes.back()->ports().listen));
  }
  NodeAccess access = MakeNodeAccess(options);
  access.stored_rows_filter = way.filter;
  auto cache =
      KvCache::CreateWith(options, geometry, kQueryHeads, *device, access)
          .value();
  Harness harness(*cache, *stream, geometry);
  SequenceSpec spec = TestSpec(16, kPrompt, kTotal);
  spec.placement.prompt_in_t0 = false;
  spec.placement.hbm_ratio = way.hbm_ratio;
  spec.placement.policy = way.placement;
  spec.t2_ratio = way.sequence_t2_ratio;
  const SequenceId id = cache->Open(spec).value();
  for (int64_t done = 0; done < kPrompt; done += 50) {
    ASSERT_TRUE(harness.Step(id, 50).ok());
    ASSERT_TRUE(cache->Drain(absl::Seconds(20)).ok());
  }
  for (int64_t i = kPrompt; i < kTotal; ++i) {
    const absl::Status status = harness.Step(id, 1);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(cache->Drain(absl::Seconds(20)).ok());
  }
  run.outputs = harness.outputs();
  run.scores = cache->Scores(id);
  run.stats = cache->Stats(id);
  for (const PageTierMap& page : cache->TierMap(id)) {
    for (const Tier tier : page.tiers) run.t2_positions += tier == Tier::kT2;
  }
}

// The largest difference of any output.
double Distance(const Outcome& a, const Outcome& b) {
  double distance = 0;
  for (size_t step = 0; step < a.outputs.size(); ++step) {
    for (size_t layer = 0; layer < a.outputs[step].size(); ++layer) {
      for (size_t i = 0; i < a.outputs[step][layer].size(); ++i) {
        distance = std::max(
            distance, static_cast<double>(std::abs(a.outputs[step][layer][i] -
                                                   b.outputs[step][layer][i])));
      }
    }
  }
  return distance;
}

TEST(T2Test, RowsHaveTheSameBitsWhicheverWayTheyAreRead) {
  Outcome fetched, attended, spread;
  Generate({ColdMode::kPrefetch, 1}, fetched);
  Generate({ColdMode::kPushdown, 1}, attended);
  Generate({ColdMode::kPushdown, 2}, spread);

  EXPECT_GT(fetched.stats.t2_tokens, 100);
  EXPECT_EQ(fetched.t2_positions, fetched.stats.t2_tokens);
  EXPECT_EQ(attended.stats.compressed_pages, fetched.stats.compressed_pages);
  EXPECT_GT(attended.stats.cold_rows_pushed_down, 1000);
  EXPECT_TRUE(attended.outputs == fetched.outputs);
  EXPECT_EQ(attended.scores, fetched.scores);
  EXPECT_TRUE(spread.outputs == fetched.outputs);
}

TEST(T2Test, EightBitsAreNearFullPrecisionAndNearerThanFour) {
  Outcome full, eight, four;
  Generate({.t2_ratio = 0}, full);
  Generate({.bits = 8}, eight);
  Generate({.bits = 4}, four);

  EXPECT_EQ(full.stats.t2_tokens, 0);
  EXPECT_GT(Distance(full, eight), 0);
  EXPECT_LT(Distance(full, eight), 0.02);
  EXPECT_GT(Distance(full, four), Distance(full, eight));
  EXPECT_LT(Distance(full, four), 0.2);
}

TEST(T2Test, AFilterOfStoredRowsChangesWhatIsReadColdAndNothingElse) {
  const StoredRowsFilter erase = [](int, std::span<std::byte> rows) {
    std::fill(rows.begin(), rows.end(), std::byte{0});
  };
  Outcome full, hot, changed;
  Generate({.t2_ratio = 0}, full);
  Generate({.t2_ratio = 0, .hbm_ratio = 10000, .filter = erase}, hot);
  Generate({.t2_ratio = 0, .filter = erase}, changed);

  EXPECT_GT(changed.stats.t1_tokens, 100);
  EXPECT_GT(Distance(full, changed), 0.02);
  EXPECT_GT(hot.stats.stored_pages, 4);
  EXPECT_EQ(hot.stats.t1_tokens, 0);
  EXPECT_TRUE(hot.outputs == full.outputs);
}

TEST(T2Test, TheRatioBoundsTheShare) {
  Outcome half;
  Generate({.t2_ratio = 5000}, half);

  EXPECT_GT(half.stats.t2_tokens, 0);
  EXPECT_LE(2 * half.stats.t2_tokens,
            half.stats.t1_tokens + half.stats.t2_tokens);
}

TEST(T2Test, ASequenceMayHaveLessT2ThanTheWorkerAndNoMore) {
  Outcome none, capped;
  Generate({.sequence_t2_ratio = 0}, none);
  Generate({.t2_ratio = 5000, .sequence_t2_ratio = 10000}, capped);

  EXPECT_EQ(none.stats.t2_tokens, 0);
  EXPECT_GT(none.stats.t1_tokens, 100);
  EXPECT_GT(capped.stats.t2_tokens, 0);
  EXPECT_LE(2 * capped.stats.t2_tokens,
            capped.stats.t1_tokens + capped.stats.t2_tokens);
}

// Random plans bring back groups of pages that are T2 already, and give most of
// them up again.
TEST(T2Test, WhatComesBackFromT2IsLossy) {
  Outcome rounded, exact;
  Generate({.placement = PlacementPolicy::kRandom}, rounded);
  Generate({.t2_ratio = 0, .placement = PlacementPolicy::kRandom}, exact);

  EXPECT_GT(rounded.stats.lossy_tokens, 0);
  EXPECT_LT(rounded.stats.lossy_tokens, rounded.stats.t0_tokens);
  EXPECT_EQ(exact.stats.lossy_tokens, 0);
  EXPECT_GT(exact.stats.undone_promotions, 0);
}

TEST(T2Test, WithoutRoomForT2PagesStayInT1AndKeepTheirBits) {
  Outcome full, refused;
  Generate({.t2_ratio = 0}, full);
  Generate({.t2_bytes = 0}, refused);

  EXPECT_EQ(refused.stats.t2_tokens, 0);
  EXPECT_TRUE(refused.outputs == full.outputs);
}

// Four stored pages, cold as a whole, of scores 3, 1, 2 and 1 per page, and one
// that the plan wants some of.
class T2ChoiceTest : public ::testing::Test {
 protected:
  T2ChoiceTest() {
    const int64_t page_scores[] = {3, 1, 2, 1, 0};
    for (const int64_t score : page_scores) {
      for (int i = 0; i < kPageTokens; ++i) sequence_.scores.push_back(score);
    }
    sequence_.remote.pages.resize(5);
    sequence_.table.Append(5 * kPageTokens, lines_);
    for (int i = 0; i < 5; ++i) {
      Page& page = sequence_.table.page(i);
      page.state = StoreState::kStored;
      page.wanted = i == 4 ? 1 : 0;
      sequence_.remote.pages[static_cast<size_t>(i)].node = 0;
      sequence_.remote.pages[static_cast<size_t>(i)].places.resize(3);
      sequence_.table.Drop(page, 0, lines_);
    }
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  T0Lines lines_ =
      T0Lines::Create(*device_, TestGeometry(), 64, uint64_t{1} << 20).value();
  Sequence sequence_{SequenceId{1}, TestSpec(64, 10, 1000), 16, TestGeometry(),
                     64};
};

TEST_F(T2ChoiceTest, TakesTheLowestScoresAndTheOlderOfEquals) {
  EXPECT_EQ(ChooseT2Pages(sequence_, 2100), (std::vector<int>{1}));
  EXPECT_EQ(ChooseT2Pages(sequence_, 4100), (std::vector<int>{1, 3}));
  EXPECT_EQ(ChooseT2Pages(sequence_, 6100), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(ChooseT2Pages(sequence_, 10000), (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(T2ChoiceTest, WhatIsInT2OrOnItsWayCounts) {
  sequence_.remote.pages[1].moving = true;
  sequence_.remote.pages[0].places.front().tier = Tier::kT2;

  EXPECT_EQ(ChooseT2Pages(sequence_, 4000), (std::vector<int>{}));
  EXPECT_EQ(ChooseT2Pages(sequence_, 6100), (std::vector<int>{3}));
}

TEST_F(T2ChoiceTest, HowFastPromotionsComeInChangesNothing) {
  sequence_.table.page(4).wanted = SlotMask(0, 32);
  const std::vector<int> before = ChooseT2Pages(sequence_, 6000);

  Page& page = sequence_.table.page(4);
  page.written = ~uint64_t{0};
  page.resident |= SlotMask(0, 32);

  EXPECT_EQ(ChooseT2Pages(sequence_, 6000), before);
}

TEST_F(T2ChoiceTest, OnlyStoredPagesOfNoUseToT0AreTaken) {
  sequence_.table.page(1).state = StoreState::kFull;
  sequence_.table.page(3).wanted = 1;

  EXPECT_EQ(ChooseT2Pages(sequence_, 10000), (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace farkv
