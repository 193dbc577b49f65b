// Attention over T2 pages in place: the bits of attention over the same pages
// decoded beforehand.
#include <bit>
#include <string>
#include <vector>

#include "common/page/page_format.h"
#include "common/page/t2_codec.h"
#include "gtest/gtest.h"
#include "tests/unit/kernels/attention_case.h"

namespace farkv {
namespace {

constexpr int kLength = 300;  // the last page is not full

ShapeOptions Shape(DType dtype) {
  ShapeOptions options;
  options.geometry = {
      .num_layers = 2, .num_kv_heads = 2, .head_dim = 48, .dtype = dtype};
  options.group = 3;
  options.dead_share = 0.2;
  return options;
}

// Every page of a sequence in both forms.
struct BothForms {
  std::vector<std::vector<std::byte>> parts, blocks;
  std::vector<Run> t2_runs, decoded_runs;
  std::vector<PageRuns> t2, decoded;
};

void Fill(const KvGeometry& g, int bits, const CaseSequence::Laid& laid,
          BothForms& forms) {
  const size_t part_bytes = T2HeadLayout::Of(g, bits).head_bytes;
  const auto heads = static_cast<size_t>(g.num_kv_heads);
  forms.t2_runs.resize(laid.pages.size());
  forms.decoded_runs.resize(laid.pages.size());
  for (size_t p = 0; p < laid.pages.size(); ++p) {
    const PageRuns& page = laid.pages[p];
    auto& parts = forms.parts.emplace_back(heads * part_bytes);
    auto& block = forms.blocks.emplace_back(g.BlockBytes(kPageTokens));
    for (size_t h = 0; h < heads; ++h) {
      const std::span<std::byte> part(parts.data() + h * part_bytes,
                                      part_bytes);
      const Run& rows = page.runs[0];
      const T1Head head{rows.keys + h * rows.head_stride,
                        rows.values + h * rows.head_stride};
      const uint64_t exceptions = page.live[h] & 0x11;
      ASSERT_TRUE(
          EncodeT2Head(g, bits, head, page.live[h], exceptions, part).ok());
      ASSERT_TRUE(DecodeT2Head(g, bits, part, ~uint64_t{0},
                               block.data() + g.KeyOffset(kPageTokens, h, 0),
                               block.data() + g.ValueOffset(kPageTokens, h, 0))
                      .ok());
    }
    Run& t2 = forms.t2_runs[p];
    t2.length = kPageTokens;
    t2.keys = parts.data();
    t2.head_stride = part_bytes;
    t2.t2_bits = static_cast<uint8_t>(bits);
    Run& decoded = forms.decoded_runs[p];
    decoded.length = kPageTokens;
    decoded.keys = block.data() + g.KeyOffset(kPageTokens, 0, 0);
    decoded.values = block.data() + g.ValueOffset(kPageTokens, 0, 0);
    decoded.head_stride = g.HeadStride(kPageTokens);
    forms.t2.push_back({page.page_index, page.live, {&t2, 1}});
    forms.decoded.push_back({page.page_index, page.live, {&decoded, 1}});
  }
}

CaseResult Attend(const ShapeOptions& options, const CaseSequence& sequence,
                  const LeafKernel& kernel, std::span<const PageRuns> pages,
                  int first_row, int threads) {
  ThreadPool pool(threads);
  const int heads = sequence.query_heads();
  const int rows = kLength - first_row;
  CaseResult result;
  result.out.emplace_back(static_cast<size_t>(rows) *
                          static_cast<size_t>(heads) * 48);
  result.scores.emplace_back(kLength, 0);
  AttentionSequence view;
  view.num_rows = rows;
  view.first_position = first_row;
  view.pages = pages;
  view.scores = result.scores[0];
  AttentionArgs args;
  args.geometry = options.geometry;
  args.num_query_heads = heads;
  args.scale = ScaleOf(options.geometry);
  args.queries = sequence.query(first_row);
  args.out = result.out[0].data();
  args.sequences = {&view, 1};
  RunAttention(pool, args, kernel);
  return result;
}

TEST(AttentionT2Test, PagesInPlaceGiveTheBitsOfDecodedOnes) {
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    const ShapeOptions options = Shape(dtype);
    const CaseSequence sequence(options, kLength, 5);
    const CaseSequence::Laid laid = sequence.LayOut(Placement::kPages);
    for (const int bits : {8, 4}) {
      BothForms forms;
      Fill(options.geometry, bits, laid, forms);
      for (const auto& [name, kernel] : KernelsFor(dtype)) {
        SCOPED_TRACE(name + ", " + std::to_string(bits) + " bits");
        for (const int first_row : {kLength - 1, kLength - 90}) {
          const CaseResult expected =
              Attend(options, sequence, kernel, forms.decoded, first_row, 1);
          EXPECT_TRUE(Attend(options, sequence, kernel, forms.t2, first_row,
                             1) == expected);
          EXPECT_TRUE(Attend(options, sequence, kernel, forms.t2, first_row,
                             3) == expected);
        }
      }
    }
  }
}

TEST(AttentionT2DeathTest, DamagedExceptionsEndTheProcess) {
  const ShapeOptions options = Shape(DType::kBf16);
  const CaseSequence sequence(options, kLength, 5);
  const CaseSequence::Laid laid = sequence.LayOut(Placement::kPages);
  BothForms forms;
  Fill(options.geometry, 8, laid, forms);
  const T2HeadLayout layout = T2HeadLayout::Of(options.geometry, 8);
  forms.parts[0][layout.exception_slots] = std::byte{64};
  const LeafKernel kernel = KernelsFor(DType::kBf16)[0].second;

  EXPECT_DEATH(Attend(options, sequence, kernel, forms.t2, kLength - 1, 1),
               "page 0, KV head 0.*names slot 64");
}

}  // namespace
}  // namespace farkv
