// Random sequences for the attention tests: keys, values and queries of every
// position, ways to lay them out in memory, and the oracle in double.
#ifndef FARKV_TESTS_UNIT_KERNELS_ATTENTION_CASE_H_
#define FARKV_TESTS_UNIT_KERNELS_ATTENTION_CASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_leaf.h"

namespace farkv {

// How rows lie in memory. Dead rows, and slots past the end, hold NaN.
enum class Placement { kPages, kScatteredPages, kLinesOf16, kSingleRows };

struct ShapeOptions {
  KvGeometry geometry;
  int group = 1;          // query heads per KV head
  double dead_share = 0;  // of the rows of each head
  uint64_t seed = 1;
};

// One sequence of `length` positions of one layer.
class CaseSequence {
 public:
  CaseSequence(const ShapeOptions& options, int length, uint64_t seed);

  int length() const { return length_; }
  int query_heads() const {
    return options_.geometry.num_kv_heads * options_.group;
  }
  const float* query(int position) const;
  float key(int position, int head, int i) const;
  float value(int position, int head, int i) const;
  bool live(int position, int head) const;
  void Kill(int position, int head);

  // Copies the rows into `storage` and returns the pages over them; both must
  // outlive the use, as must this object (it owns the bitmaps).
  struct Laid {
    std::vector<std::vector<std::byte>> storage;
    std::vector<std::vector<Run>> runs;
    std::vector<PageRuns> pages;
  };
  Laid LayOut(Placement placement) const;

  // Output row [query_heads][head_dim] of the query at `position`; adds its
  // weights, averaged over layers and heads, to `scores` when not null.
  std::vector<double> Oracle(int position, float scale,
                             std::vector<double>* scores) const;

 private:
  size_t Index(int position, int head) const;

  ShapeOptions options_;
  int length_;
  std::vector<float> queries_, keys_, values_;  // rounded to the dtype
  std::vector<uint64_t> live_;                  // [page][head]
};

struct CaseResult {
  std::vector<std::vector<float>> out;            // per sequence, all rows
  std::vector<std::vector<int64_t>> scores;       // per sequence
  std::vector<std::vector<int64_t>> head_scores;  // likewise, [KV head][...]

  friend bool operator==(const CaseResult&, const CaseResult&) = default;
};

struct RunOptions {
  Placement placement = Placement::kPages;
  int threads = 1;
  int chunk = 1;         // query rows per call and sequence
  int first_row = 0;     // rows before are not queried
  bool together = true;  // all sequences in one call, or one call each
  bool scored = true;
  bool drop_dead_pages = false;  // leave pages without live rows out
};

inline float ScaleOf(const KvGeometry& geometry) {
  return 1.0f / __builtin_sqrtf(static_cast<float>(geometry.head_dim));
}

// Runs every row of every sequence through RunAttention.
CaseResult RunCase(const std::vector<CaseSequence>& sequences,
                   const ShapeOptions& options, const LeafKernel& kernel,
                   const RunOptions& run);

// Kernels of this machine for a dtype: Highway, and AVX512_BF16 where it runs.
std::vector<std::pair<std::string, LeafKernel>> KernelsFor(DType dtype);

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_KERNELS_ATTENTION_CASE_H_
