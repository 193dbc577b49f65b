#include "tests/unit/kernels/attention_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/bf16.h"
#include "common/base/random.h"
#include "kernels/cpu_features.h"

namespace farkv {
namespace {

float RoundTo(DType dtype, float x) {
  return dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(x)) : x;
}

void StoreElement(DType dtype, float x, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, &x, sizeof(x));
    return;
  }
  const uint16_t bits = FloatToBf16(x);
  std::memcpy(to, &bits, sizeof(bits));
}

int RowsOf(Placement placement) {
  switch (placement) {
    case Placement::kLinesOf16:
      return 16;
    case Placement::kSingleRows:
      return 1;
    default:
      return kPageTokens;
  }
}

}  // namespace

CaseSequence::CaseSequence(const ShapeOptions& options, int length,
                           uint64_t seed)
    : options_(options), length_(length) {
  const KvGeometry& g = options.geometry;
  uint64_t n = 0;
  auto draw = [&] {
    return static_cast<float>(2 * ToUnit(SplitMix64At(seed, n++)) - 1);
  };
  const size_t rows = static_cast<size_t>(length);
  const size_t row = static_cast<size_t>(g.num_kv_heads * g.head_dim);
  queries_.resize(rows * row * static_cast<size_t>(options.group));
  keys_.resize(rows * row);
  values_.resize(rows * row);
  // Logits of a few units, so that weights differ.
  for (float& x : queries_) x = 6 * draw();
  for (float& x : keys_) x = RoundTo(g.dtype, draw());
  for (float& x : values_) x = RoundTo(g.dtype, draw());
  const int pages = (length + kPageTokens - 1) / kPageTokens;
  live_.resize(static_cast<size_t>(pages * g.num_kv_heads));
  for (int position = 0; position < length; ++position) {
    for (int h = 0; h < g.num_kv_heads; ++h) {
      const uint64_t bit = uint64_t{1} << (position % kPageTokens);
      const double u = ToUnit(CounterDraw(
          seed, {static_cast<uint64_t>(position), static_cast<uint64_t>(h)}));
      if (u >= options.dead_share) live_[Index(position, h)] |= bit;
    }
  }
}

size_t CaseSequence::Index(int position, int head) const {
  return static_cast<size_t>(
      position / kPageTokens * options_.geometry.num_kv_heads + head);
}

const float* CaseSequence::query(int position) const {
  return queries_.data() +
         position * query_heads() * options_.geometry.head_dim;
}

float CaseSequence::key(int position, int head, int i) const {
  const KvGeometry& g = options_.geometry;
  return keys_[static_cast<size_t>(
      (position * g.num_kv_heads + head) * g.head_dim + i)];
}

float CaseSequence::value(int position, int head, int i) const {
  const KvGeometry& g = options_.geometry;
  return values_[static_cast<size_t>(
      (position * g.num_kv_heads + head) * g.head_dim + i)];
}

bool CaseSequence::live(int position, int head) const {
  return (live_[Index(position, head)] >> (position % kPageTokens) & 1) != 0;
}

void CaseSequence::Kill(int position, int head) {
  live_[Index(position, head)] &= ~(uint64_t{1} << (position % kPageTokens));
}

CaseSequence::Laid CaseSequence::LayOut(Placement placement) const {
  const KvGeometry& g = options_.geometry;
  const int n = RowsOf(placement);
  const size_t rows = static_cast<size_t>(n);
  const size_t heads = static_cast<size_t>(g.num_kv_heads);
  const size_t num_blocks = static_cast<size_t>((length_ + n - 1) / n);
  const size_t num_pages = live_.size() / heads;
  Laid laid;
  laid.storage.resize(placement == Placement::kPages ? 1 : num_blocks);
  laid.runs.resize(num_pages);
  if (placement == Placement::kPages) {
    laid.storage[0].resize(num_blocks * g.BlockBytes(rows));
  }
  for (size_t b = 0; b < num_blocks; ++b) {
    // Blocks are allocated from the last to the first: addresses tell nothing.
    const size_t block = num_blocks - 1 - b;
    const bool together = placement == Placement::kPages;
    if (!together) laid.storage[block].resize(g.BlockBytes(rows));
    std::byte* base = together
                          ? laid.storage[0].data() + block * g.BlockBytes(rows)
                          : laid.storage[block].data();
    for (size_t i = 0; i < g.BlockBytes(rows); i += g.ElementBytes()) {
      StoreElement(g.dtype, std::nanf(""), base + i);
    }
    const int first = static_cast<int>(block) * n;
    const int end = std::min(first + n, length_);
    for (int position = first; position < end; ++position) {
      for (int h = 0; h < g.num_kv_heads; ++h) {
        if (!live(position, h)) continue;
        const size_t at = static_cast<size_t>(position - first);
        for (int i = 0; i < g.head_dim; ++i) {
          const size_t offset = static_cast<size_t>(i) * g.ElementBytes();
          StoreElement(
              g.dtype, key(position, h, i),
              base + g.KeyOffset(rows, static_cast<size_t>(h), at) + offset);
          StoreElement(
              g.dtype, value(position, h, i),
              base + g.ValueOffset(rows, static_cast<size_t>(h), at) + offset);
        }
      }
    }
    Run run;
    run.keys = base;
    run.values = base + g.ValueOffset(rows, 0, 0);
    run.head_stride = g.HeadStride(rows);
    run.first_slot = static_cast<uint8_t>(first % kPageTokens);
    run.length = static_cast<uint8_t>(end - first);
    auto& runs = laid.runs[static_cast<size_t>(first / kPageTokens)];
    runs.insert(runs.begin(), run);
  }
  for (size_t page = 0; page < num_pages; ++page) {
    laid.pages.push_back({.page_index = static_cast<int32_t>(page),
                          .live = live_.data() + page * heads,
                          .runs = laid.runs[page]});
  }
  return laid;
}

std::vector<double> CaseSequence::Oracle(int position, float scale,
                                         std::vector<double>* scores) const {
  const KvGeometry& g = options_.geometry;
  const int heads = query_heads();
  std::vector<double> out(static_cast<size_t>(heads * g.head_dim));
  for (int head = 0; head < heads; ++head) {
    const int kv = head / options_.group;
    const float* q = query(position) + head * g.head_dim;
    std::vector<double> weight(static_cast<size_t>(position + 1));
    double sum = 0;
    for (int p = 0; p <= position; ++p) {
      if (!live(p, kv)) continue;
      double logit = 0;
      for (int i = 0; i < g.head_dim; ++i) {
        logit += static_cast<double>(RoundTo(g.dtype, q[i])) * key(p, kv, i);
      }
      weight[static_cast<size_t>(p)] = std::exp(logit * scale);
      sum += weight[static_cast<size_t>(p)];
    }
    for (int p = 0; p <= position && sum > 0; ++p) {
      const double w = weight[static_cast<size_t>(p)] / sum;
      if (w == 0) continue;
      for (int i = 0; i < g.head_dim; ++i) {
        out[static_cast<size_t>(head * g.head_dim + i)] += w * value(p, kv, i);
      }
      if (scores != nullptr) {
        (*scores)[static_cast<size_t>(p)] += w / heads / g.num_layers;
      }
    }
  }
  return out;
}

namespace {

struct Prepared {
  std::vector<CaseSequence::Laid> laid;
  std::vector<float> queries, out;
};

// One call: rows [from, from + chunk) of the sequences in [first, end).
void RunChunk(const std::vector<CaseSequence>& sequences,
              const ShapeOptions& options, const LeafKernel& kernel,
              const RunOptions& run, ThreadPool& pool, size_t first, size_t end,
              int from, Prepared& prepared, CaseResult& result) {
  const KvGeometry& g = options.geometry;
  const size_t row =
      static_cast<size_t>(g.num_kv_heads * options.group * g.head_dim);
  std::vector<AttentionSequence> list;
  prepared.queries.clear();
  int32_t rows = 0;
  for (size_t s = first; s < end; ++s) {
    const int count = std::min(run.chunk, sequences[s].length() - from);
    if (count <= 0) continue;
    AttentionSequence sequence;
    sequence.first_row = rows;
    sequence.num_rows = count;
    sequence.first_position = from;
    sequence.pages = prepared.laid[s].pages;
    if (run.scored) {
      sequence.scores = result.scores[s];
      sequence.head_scores = result.head_scores[s];
    }
    list.push_back(sequence);
    const float* query = sequences[s].query(from);
    prepared.queries.insert(prepared.queries.end(), query,
                            query + static_cast<size_t>(count) * row);
    rows += count;
  }
  if (rows == 0) return;
  prepared.out.assign(static_cast<size_t>(rows) * row, std::nanf(""));
  AttentionArgs args;
  args.geometry = g;
  args.num_query_heads = g.num_kv_heads * options.group;
  args.scale = ScaleOf(g);
  args.queries = prepared.queries.data();
  args.out = prepared.out.data();
  args.sequences = list;
  RunAttention(pool, args, kernel);
  size_t i = 0;
  for (size_t s = first; s < end; ++s) {
    if (sequences[s].length() <= from) continue;
    const auto& part = list[i++];
    auto begin =
        prepared.out.begin() + static_cast<ptrdiff_t>(row) * part.first_row;
    std::copy(begin, begin + static_cast<ptrdiff_t>(row) * part.num_rows,
              result.out[s].begin() + static_cast<ptrdiff_t>(row) * from);
  }
}

}  // namespace

CaseResult RunCase(const std::vector<CaseSequence>& sequences,
                   const ShapeOptions& options, const LeafKernel& kernel,
                   const RunOptions& run) {
  CaseResult result;
  Prepared prepared;
  int longest = 0;
  const KvGeometry& g = options.geometry;
  for (const CaseSequence& sequence : sequences) {
    prepared.laid.push_back(sequence.LayOut(run.placement));
    if (run.drop_dead_pages) {
      std::erase_if(prepared.laid.back().pages, [&](const PageRuns& page) {
        return std::all_of(page.live, page.live + g.num_kv_heads,
                           [](uint64_t bits) { return bits == 0; });
      });
    }
    result.out.emplace_back(static_cast<size_t>(
        sequence.length() * g.num_kv_heads * options.group * g.head_dim));
    result.scores.emplace_back(static_cast<size_t>(sequence.length()));
    result.head_scores.emplace_back(
        static_cast<size_t>(sequence.length() * g.num_kv_heads));
    longest = std::max(longest, sequence.length());
  }
  ThreadPool pool(run.threads);
  for (int from = run.first_row; from < longest; from += run.chunk) {
    const size_t step = run.together ? sequences.size() : 1;
    for (size_t s = 0; s < sequences.size(); s += step) {
      RunChunk(sequences, options, kernel, run, pool, s, s + step, from,
               prepared, result);
    }
  }
  return result;
}

std::vector<std::pair<std::string, LeafKernel>> KernelsFor(DType dtype) {
  std::vector<std::pair<std::string, LeafKernel>> kernels;
  kernels.emplace_back("highway", HighwayLeafKernel(dtype));
  if (dtype == DType::kBf16 && HasAvx512Bf16()) {
    kernels.emplace_back("avx512bf16", Avx512Bf16LeafKernel());
  }
  return kernels;
}

}  // namespace farkv
