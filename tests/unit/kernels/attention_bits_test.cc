// The same bits of outputs and scores whatever the placement, the thread
// count, the prefill chunking and the batch company: promise P1's core.
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/attention_plan.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/kernels/attention_case.h"

namespace farkv {
namespace {

ShapeOptions Shape(DType dtype, int heads, int dim, int group, double dead) {
  ShapeOptions options;
  options.geometry = {
      .num_layers = 2, .num_kv_heads = heads, .head_dim = dim, .dtype = dtype};
  options.group = group;
  options.dead_share = dead;
  return options;
}

// Bit for bit: a NaN would equal itself, and zeros differ by their signs.
void ExpectSameBits(const CaseResult& got, const CaseResult& want) {
  ASSERT_EQ(got.out.size(), want.out.size());
  for (size_t s = 0; s < got.out.size(); ++s) {
    ASSERT_EQ(got.out[s].size(), want.out[s].size());
    for (size_t i = 0; i < got.out[s].size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(got.out[s][i]),
                std::bit_cast<uint32_t>(want.out[s][i]))
          << "sequence " << s << " element " << i;
      ASSERT_FALSE(std::isnan(got.out[s][i]));
    }
    ASSERT_EQ(got.scores[s], want.scores[s]) << "sequence " << s;
    ASSERT_EQ(got.head_scores[s], want.head_scores[s]) << "sequence " << s;
  }
}

std::string Describe(const RunOptions& run) {
  return "placement " + std::to_string(static_cast<int>(run.placement)) +
         ", threads " + std::to_string(run.threads) + ", chunk " +
         std::to_string(run.chunk);
}

class AttentionBitsTest : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionBitsTest, DoNotDependOnPlacementThreadsOrChunk) {
  const ShapeOptions options = Shape(GetParam(), 3, 32, 3, 0.1);
  const std::vector<CaseSequence> sequences = {CaseSequence(options, 580, 11)};
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    const CaseResult want = RunCase(sequences, options, kernel, {});
    for (const int chunk : {1, 7, 64, 512}) {
      for (const int threads : {1, 2, 3}) {
        // Each placement meets each chunk, each with another thread count.
        const auto placement = static_cast<Placement>((chunk + threads) % 4);
        const RunOptions run = {
            .placement = placement, .threads = threads, .chunk = chunk};
        SCOPED_TRACE(name + ", " + Describe(run));
        ExpectSameBits(RunCase(sequences, options, kernel, run), want);
      }
    }
  }
}

TEST_P(AttentionBitsTest, DoNotDependOnTheNumberOfRounds) {
  // 512 rows x 8 pages x 40 query heads hold more weights than one round.
  const ShapeOptions options = Shape(GetParam(), 1, 16, 40, 0);
  const std::vector<CaseSequence> sequences = {CaseSequence(options, 512, 17)};
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    ExpectSameBits(
        RunCase(sequences, options, kernel, {.threads = 2, .chunk = 512}),
        RunCase(sequences, options, kernel, {.chunk = 50}));
  }
}

TEST_P(AttentionBitsTest, DoNotDependOnPlacementInDecode) {
  const ShapeOptions options = Shape(GetParam(), 2, 48, 5, 0.3);
  const std::vector<CaseSequence> sequences = {CaseSequence(options, 700, 12)};
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    const CaseResult want =
        RunCase(sequences, options, kernel, {.first_row = 600});
    for (const Placement placement :
         {Placement::kPages, Placement::kScatteredPages, Placement::kLinesOf16,
          Placement::kSingleRows}) {
      for (const int threads : {1, 2, 3}) {
        const RunOptions run = {
            .placement = placement, .threads = threads, .first_row = 600};
        SCOPED_TRACE(name + ", " + Describe(run));
        ExpectSameBits(RunCase(sequences, options, kernel, run), want);
      }
    }
  }
}

TEST_P(AttentionBitsTest, DoNotDependOnWhetherAnEvictedPageIsListed) {
  // Pages 0..3, 9 and 12 are gone, so that ranges of pages keep other places
  // in the tree than they have in the list.
  const ShapeOptions options = Shape(GetParam(), 2, 16, 2, 0.1);
  std::vector<CaseSequence> sequences = {CaseSequence(options, 1100, 18)};
  for (int position = 0; position < 13 * kPageTokens; ++position) {
    const int page = position / kPageTokens;
    if (page >= 4 && page != 9 && page != 12) continue;
    for (int h = 0; h < 2; ++h) sequences[0].Kill(position, h);
  }
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    const CaseResult want =
        RunCase(sequences, options, kernel, {.first_row = 1000});
    for (const int threads : {1, 2, 3, 8}) {
      const RunOptions run = {
          .threads = threads, .first_row = 1000, .drop_dead_pages = true};
      SCOPED_TRACE(name + ", " + Describe(run));
      ExpectSameBits(RunCase(sequences, options, kernel, run), want);
    }
  }
}

TEST_P(AttentionBitsTest, DoNotDependOnBatchCompany) {
  const ShapeOptions options = Shape(GetParam(), 2, 64, 2, 0.05);
  std::vector<CaseSequence> sequences;
  for (int i = 0; i < 16; ++i) {
    sequences.emplace_back(options, 1 + 37 * i % 300, 100 + i);
  }
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    const CaseResult want =
        RunCase(sequences, options, kernel, {.together = false});
    for (const int threads : {1, 2, 3}) {
      for (const int chunk : {1, 64}) {
        const RunOptions run = {.threads = threads, .chunk = chunk};
        SCOPED_TRACE(name + ", " + Describe(run));
        ExpectSameBits(RunCase(sequences, options, kernel, run), want);
      }
    }
  }
}

TEST_P(AttentionBitsTest, DoNotDependOnTheOtherHeads) {
  // KV head 1's five query heads, computed with two other KV heads, and one
  // query head at a time.
  const ShapeOptions all = Shape(GetParam(), 3, 64, 5, 0.2);
  const CaseSequence sequence(all, 200, 13);
  const auto laid = sequence.LayOut(Placement::kPages);
  std::vector<uint64_t> live;
  std::vector<PageRuns> pages = laid.pages;
  for (const PageRuns& page : laid.pages) live.push_back(page.live[1]);
  std::vector<farkv::Run> runs;
  for (size_t p = 0; p < pages.size(); ++p) {
    farkv::Run run = laid.pages[p].runs[0];
    run.keys += run.head_stride;
    run.values += run.head_stride;
    runs.push_back(run);
  }
  for (size_t p = 0; p < pages.size(); ++p) {
    pages[p].live = &live[p];
    pages[p].runs = {&runs[p], 1};
  }
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    const CaseResult want =
        RunCase({sequence}, all, kernel, {.first_row = 199});
    ThreadPool pool(1);
    for (size_t g = 5; g < 10; ++g) {
      std::vector<float> out(64);
      AttentionSequence one;
      one.num_rows = 1;
      one.first_position = 199;
      one.pages = pages;
      AttentionArgs args;
      args.geometry = all.geometry;
      args.geometry.num_kv_heads = 1;
      args.num_query_heads = 1;
      args.scale = ScaleOf(all.geometry);
      args.queries = sequence.query(199) + g * 64;
      args.out = out.data();
      args.sequences = {&one, 1};
      RunAttention(pool, args, kernel);
      const float* whole = want.out[0].data() + (199 * 15 + g) * 64;
      for (size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]),
                  std::bit_cast<uint32_t>(whole[i]))
            << "query head " << g;
      }
    }
  }
}

TEST_P(AttentionBitsTest, AreTheSameForAllWaysUnderEachHighwayTarget) {
  const ShapeOptions options = Shape(GetParam(), 2, 48, 3, 0.1);
  const std::vector<CaseSequence> sequences = {CaseSequence(options, 150, 14),
                                               CaseSequence(options, 70, 15)};
  ForEachHighwayTarget([&] {
    const LeafKernel kernel = HighwayLeafKernel(GetParam());
    const CaseResult want =
        RunCase(sequences, options, kernel, {.together = false});
    for (const int chunk : {1, 7, 64}) {
      const RunOptions run = {
          .placement = Placement::kLinesOf16, .threads = 2, .chunk = chunk};
      SCOPED_TRACE(Describe(run));
      ExpectSameBits(RunCase(sequences, options, kernel, run), want);
    }
  });
}

TEST_P(AttentionBitsTest, ScoringDoesNotChangeOutputs) {
  const ShapeOptions options = Shape(GetParam(), 2, 64, 4, 0.1);
  const std::vector<CaseSequence> sequences = {CaseSequence(options, 300, 16)};
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    const CaseResult on = RunCase(sequences, options, kernel, {.chunk = 64});
    CaseResult off =
        RunCase(sequences, options, kernel, {.chunk = 64, .scored = false});
    off.scores = on.scores;
    off.head_scores = on.head_scores;
    ExpectSameBits(off, on);
  }
}

INSTANTIATE_TEST_SUITE_P(, AttentionBitsTest,
                         ::testing::Values(DType::kBf16, DType::kF32),
                         [](const auto& param) {
                           return std::string(DTypeName(param.param));
                         });

// The plan must cover each (row, page, KV head) exactly once, in subtrees.
TEST(AttentionPlanTest, CoversEveryLeafOnceWithinTheLimits) {
  std::vector<uint64_t> live(2, ~uint64_t{0});
  std::vector<PageRuns> pages;
  for (const int32_t index : {0, 1, 2, 5, 6, 9, 14, 15, 16, 17, 30}) {
    pages.push_back({.page_index = index, .live = live.data(), .runs = {}});
  }
  std::vector<int64_t> scores(31 * kPageTokens);
  std::vector<AttentionSequence> sequences(3);
  sequences[0].num_rows = 1;
  sequences[0].first_position = 1000;
  sequences[0].pages = pages;
  sequences[1].first_row = 1;
  sequences[1].num_rows = 70;
  sequences[1].first_position = 900;
  sequences[1].pages = pages;
  sequences[1].scores = scores;
  sequences[2].first_row = 71;
  sequences[2].num_rows = 1;
  AttentionArgs args;
  args.geometry = {.num_layers = 1, .num_kv_heads = 2, .head_dim = 16};
  args.num_query_heads = 4;
  args.sequences = sequences;
  for (const int threads : {1, 2, 7, 64}) {
    AttentionCursor cursor;
    AttentionRound round;
    int rows = 0;
    while (PlanRound(
        args, {.num_threads = threads, .max_partials = 40, .max_leaves = 400},
        cursor, round)) {
      if (round.blocks.size() > 1) {
        EXPECT_LE(round.num_leaves, 400u);
      }
      std::vector<std::vector<int>> seen(round.blocks.size());
      for (size_t b = 0; b < round.blocks.size(); ++b) {
        rows += round.blocks[b].num_rows;
        seen[b].resize(static_cast<size_t>(round.blocks[b].num_pages) * 2);
      }
      for (const AttentionUnit& unit : round.units) {
        for (int p = unit.first_page; p < unit.first_page + unit.num_pages;
             ++p) {
          const int32_t index = pages[static_cast<size_t>(p)].page_index;
          EXPECT_GE(index, unit.subtree.begin());
          EXPECT_LT(index, unit.subtree.end());
          for (int h = 0; h < unit.num_heads; ++h) {
            ++seen[static_cast<size_t>(unit.block)]
                  [static_cast<size_t>(p * 2 + unit.first_head + h)];
          }
        }
      }
      for (const auto& block : seen) EXPECT_THAT(block, ::testing::Each(1));
    }
    EXPECT_EQ(rows, 72) << threads;
  }
}

}  // namespace
}  // namespace farkv
