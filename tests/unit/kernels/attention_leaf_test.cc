// Dead rows, ragged bitmaps, and the pieces that a memory node uses.
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/attention_tree/tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/attention.h"
#include "tests/unit/kernels/attention_case.h"

namespace farkv {
namespace {

using ::testing::Each;
using ::testing::Eq;

constexpr float kEmpty = -std::numeric_limits<float>::infinity();

ShapeOptions Shape(DType dtype, int heads, int dim, int group, double dead) {
  ShapeOptions options;
  options.geometry = {
      .num_layers = 4, .num_kv_heads = heads, .head_dim = dim, .dtype = dtype};
  options.group = group;
  options.dead_share = dead;
  return options;
}

AttentionArgs ArgsOf(const ShapeOptions& options) {
  AttentionArgs args;
  args.geometry = options.geometry;
  args.num_query_heads = options.geometry.num_kv_heads * options.group;
  args.scale = ScaleOf(options.geometry);
  return args;
}

struct Leaf {
  explicit Leaf(const AttentionArgs& args)
      : m(static_cast<size_t>(args.num_query_heads), 7.0f),
        l(m.size(), 7.0f),
        out(m.size() * static_cast<size_t>(args.geometry.head_dim), 7.0f),
        weights(m.size() * kPageTokens, 7.0f) {}
  PartialView View() { return {m.data(), l.data(), out.data()}; }

  std::vector<float> m, l, out, weights;
};

class AttentionLeafTest : public ::testing::TestWithParam<DType> {};

// What a worker does with leaves of two nodes: bits of Attention() itself.
TEST_P(AttentionLeafTest, LeavesAndScoresOfSeveralPartiesGiveAttentionsBits) {
  const ShapeOptions options = Shape(GetParam(), 2, 64, 3, 0.3);
  const CaseSequence sequence(options, 1000, 21);
  const int position = 990;
  const auto laid = sequence.LayOut(Placement::kPages);
  const AttentionArgs args = ArgsOf(options);
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    std::vector<Leaf> leaves;
    AttentionTree tree;
    tree.Reset(args.num_query_heads, 64, AttentionTree::Gaps::kAbsent);
    for (const PageRuns& page : laid.pages) {
      leaves.emplace_back(args);
      RunLeaf(args, kernel, sequence.query(position), position, page,
              leaves.back().View(), leaves.back().weights.data());
    }
    for (const PageRuns& page : laid.pages) {
      ASSERT_TRUE(tree.Add({0, page.page_index},
                           leaves[static_cast<size_t>(page.page_index)].View())
                      .ok());
    }
    const PartialView root = tree.Root();
    std::vector<int64_t> scores(laid.pages.size() * kPageTokens);
    for (size_t p = 0; p < leaves.size(); ++p) {
      AddLeafScores(args, leaves[p].weights.data(), leaves[p].m.data(), root.m,
                    root.l, scores.data() + p * kPageTokens);
    }
    scores.resize(1000);
    NormalizePartials(args.num_query_heads, 64, root, root.out);

    const CaseResult want = RunCase({sequence}, options, kernel,
                                    {.chunk = 1, .first_row = position});
    const size_t row = leaves[0].out.size();
    std::vector<int64_t> last(1000);
    RunOptions after = {.chunk = 1, .first_row = position + 1};
    const CaseResult rest = RunCase({sequence}, options, kernel, after);
    for (size_t i = 0; i < last.size(); ++i) {
      last[i] = want.scores[0][i] - rest.scores[0][i];
    }
    EXPECT_EQ(scores, last);
    EXPECT_EQ(std::memcmp(root.out, want.out[0].data() + position * row,
                          row * sizeof(float)),
              0);
  }
}

TEST_P(AttentionLeafTest, AnEmptyBitmapGivesEmptyPartialsAndZeroWeights) {
  const ShapeOptions options = Shape(GetParam(), 2, 32, 2, 0);
  CaseSequence sequence(options, 64, 22);
  for (int position = 0; position < 64; ++position) sequence.Kill(position, 1);
  const auto laid = sequence.LayOut(Placement::kPages);
  const AttentionArgs args = ArgsOf(options);
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    Leaf leaf(args);
    RunLeaf(args, kernel, sequence.query(63), 63, laid.pages[0], leaf.View(),
            leaf.weights.data());

    EXPECT_TRUE(std::isfinite(leaf.m[1]));
    for (size_t head = 2; head < 4; ++head) {
      EXPECT_EQ(leaf.m[head], kEmpty);
      EXPECT_EQ(leaf.l[head], 0.0f);
      const auto first = leaf.out.begin() + static_cast<ptrdiff_t>(head * 32);
      EXPECT_THAT(std::vector<float>(first, first + 32), Each(Eq(0.0f)));
      const auto weight =
          leaf.weights.begin() + static_cast<ptrdiff_t>(head * kPageTokens);
      EXPECT_THAT(std::vector<float>(weight, weight + kPageTokens),
                  Each(Eq(0.0f)));
    }
    // The whole operation: zeros, never NaN, for the head without rows.
    const CaseResult result =
        RunCase({sequence}, options, kernel, {.chunk = 16});
    const size_t last = 63 * 4 * 32;
    for (size_t i = 0; i < 128; ++i) {
      EXPECT_EQ(result.out[0][last + i] == 0.0f, i >= 64);
    }
  }
}

TEST_P(AttentionLeafTest, ASequenceWithoutPagesGivesZeros) {
  const ShapeOptions options = Shape(GetParam(), 1, 16, 2, 0);
  const CaseSequence sequence(options, 1, 23);
  AttentionArgs args = ArgsOf(options);
  std::vector<float> out(32, 1.0f);
  AttentionSequence one;
  one.num_rows = 1;
  args.queries = sequence.query(0);
  args.out = out.data();
  args.sequences = {&one, 1};
  ThreadPool pool(2);
  RunAttention(pool, args, KernelsFor(GetParam())[0].second);

  EXPECT_THAT(out, Each(Eq(0.0f)));
}

TEST_P(AttentionLeafTest, RowsBehindTheQueryAndDeadSlotsHaveZeroWeight) {
  const ShapeOptions options = Shape(GetParam(), 1, 16, 1, 0.4);
  const CaseSequence sequence(options, 64, 24);
  const auto laid = sequence.LayOut(Placement::kSingleRows);
  const AttentionArgs args = ArgsOf(options);
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    for (const int position : {0, 1, 30, 62, 63}) {
      Leaf leaf(args);
      RunLeaf(args, kernel, sequence.query(position), position, laid.pages[0],
              leaf.View(), leaf.weights.data());
      float top = 0;
      for (int slot = 0; slot < kPageTokens; ++slot) {
        const float weight = leaf.weights[static_cast<size_t>(slot)];
        const bool seen = slot <= position && sequence.live(slot, 0);
        EXPECT_EQ(weight > 0, seen) << slot;
        EXPECT_FALSE(std::signbit(weight));
        top = std::max(top, weight);
      }
      EXPECT_EQ(top, leaf.m[0] == kEmpty ? 0.0f : 1.0f);
    }
  }
}

// Each row has memory pages of its own; those of dead rows cannot be read.
TEST_P(AttentionLeafTest, NeverReadsDeadRows) {
  const ShapeOptions options = Shape(GetParam(), 2, 64, 3, 0);
  CaseSequence sequence(options, 128, 25);
  const size_t step = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<std::byte*>(
      mmap(nullptr, 128 * 2 * step, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const auto plain = sequence.LayOut(Placement::kSingleRows);
  std::vector<std::vector<farkv::Run>> runs = plain.runs;
  const size_t row_bytes = options.geometry.RowBytes();
  for (size_t position = 0; position < 128; ++position) {
    farkv::Run& run = runs[position / kPageTokens][position % kPageTokens];
    for (size_t h = 0; h < 2; ++h) {
      std::byte* own = memory + (position * 2 + h) * step;
      std::memcpy(own, run.keys + h * row_bytes, row_bytes);
      // Every third row of head 0 and every fifth of head 1, and all behind
      // the last query.
      if (position % (h == 0 ? 3 : 5) == 0 || position > 100) {
        sequence.Kill(static_cast<int>(position), static_cast<int>(h));
        ASSERT_EQ(mprotect(own, step, PROT_NONE), 0);
      }
    }
    run.keys = memory + position * 2 * step;
    run.values = run.keys + options.geometry.VectorBytes();
    run.head_stride = step;
  }
  std::vector<PageRuns> pages = sequence.LayOut(Placement::kPages).pages;
  for (size_t p = 0; p < pages.size(); ++p) pages[p].runs = runs[p];
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    SCOPED_TRACE(name);
    AttentionArgs args = ArgsOf(options);
    std::vector<float> out(30 * 6 * 64);
    AttentionSequence rows;
    rows.num_rows = 30;
    rows.first_position = 71;
    rows.pages = pages;
    args.queries = sequence.query(71);
    args.out = out.data();
    args.sequences = {&rows, 1};
    ThreadPool pool(1);
    RunAttention(pool, args, kernel);

    const CaseResult want =
        RunCase({sequence}, options, kernel, {.chunk = 30, .first_row = 71});
    EXPECT_EQ(std::memcmp(out.data(), want.out[0].data() + 71 * 6 * 64,
                          out.size() * sizeof(float)),
              0);
  }
  ASSERT_EQ(munmap(memory, 128 * 2 * step), 0);
}

TEST_P(AttentionLeafTest, ScoresAddUpToOnePerQueryRowAndLayerShare) {
  const ShapeOptions options = Shape(GetParam(), 2, 32, 2, 0);
  const CaseSequence sequence(options, 300, 26);
  for (const auto& [name, kernel] : KernelsFor(GetParam())) {
    const CaseResult result =
        RunCase({sequence}, options, kernel, {.chunk = 50});
    double sum = 0;
    for (const int64_t score : result.scores[0]) {
      EXPECT_GE(score, 0);
      sum += static_cast<double>(score) * 0x1p-40;
    }
    EXPECT_NEAR(sum, 300.0 / options.geometry.num_layers, 1e-3) << name;
  }
}

TEST_P(AttentionLeafTest, ScoresAreAddedToWhatIsThereAndStopAtTheirEnd) {
  const ShapeOptions options = Shape(GetParam(), 1, 16, 2, 0);
  const CaseSequence sequence(options, 100, 27);
  const auto laid = sequence.LayOut(Placement::kPages);
  const LeafKernel kernel = KernelsFor(GetParam())[0].second;
  auto run = [&](std::span<int64_t> scores) {
    AttentionArgs args = ArgsOf(options);
    std::vector<float> out(32);
    AttentionSequence one;
    one.num_rows = 1;
    one.first_position = 99;
    one.pages = laid.pages;
    one.scores = scores;
    args.queries = sequence.query(99);
    args.out = out.data();
    args.sequences = {&one, 1};
    ThreadPool pool(1);
    RunAttention(pool, args, kernel);
  };
  std::vector<int64_t> fresh(100, 0);
  run(fresh);
  std::vector<int64_t> used(100, 1000);
  run(std::span(used).first(70));

  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(used[i], i < 70 ? fresh[i] + 1000 : 1000) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, AttentionLeafTest,
                         ::testing::Values(DType::kBf16, DType::kF32),
                         [](const auto& param) {
                           return std::string(DTypeName(param.param));
                         });

TEST(AttentionDeathTest, ALiveRowThatNoRunCoversIsNeverLeftOutSilently) {
  const ShapeOptions options = Shape(DType::kF32, 1, 16, 1, 0);
  const CaseSequence sequence(options, 20, 29);
  auto laid = sequence.LayOut(Placement::kPages);
  laid.runs[0][0].length = 19;
  const AttentionArgs args = ArgsOf(options);
  Leaf leaf(args);

  EXPECT_DEATH(AttentionLeaf(args, sequence.query(19), 19, laid.pages[0],
                             leaf.View(), nullptr),
               "page 0, KV head 0: live rows 00000000000fffff are 20, but the "
               "page's runs hold 19");
}

// The public entry: on a stream, with the arguments copied.
TEST(AttentionTest, RunsOnAStreamWithTheKernelOfThisProcess) {
  const ShapeOptions options = Shape(DType::kBf16, 2, 64, 4, 0.1);
  const CaseSequence sequence(options, 200, 28);
  const auto laid = sequence.LayOut(Placement::kPages);
  ThreadPool pool(2);
  auto device = OpenDevice("cpu", pool);
  ASSERT_TRUE(device.ok()) << device.status();
  const auto stream = (*device)->NewStream();
  std::vector<float> out(8 * 64);
  AttentionSequence one;
  one.num_rows = 1;
  one.first_position = 199;
  one.pages = laid.pages;
  {
    AttentionArgs args = ArgsOf(options);
    args.queries = sequence.query(199);
    args.out = out.data();
    args.sequences = {&one, 1};
    Attention(*stream, args);
  }
  stream->Synchronize();

  const CaseResult want = RunCase(
      {sequence}, options, ChooseLeafKernel(DType::kBf16), {.first_row = 199});
  EXPECT_EQ(std::memcmp(out.data(), want.out[0].data() + 199 * 8 * 64,
                        out.size() * sizeof(float)),
            0);
}

}  // namespace
}  // namespace farkv
