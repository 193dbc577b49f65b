// Ways to round stored rows that only the accuracy bench has, and what it
// learns about rows on their way to a node. ALGORITHMS 11.
//
// The rows are rounded before they are stored, in the T1 format: attention
// reads the same numbers that codes would give, and no node knows. Each page is
// rounded once.
#ifndef FARKV_BENCH_ACCURACY_ROUNDING_H_
#define FARKV_BENCH_ACCURACY_ROUNDING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/layout/kv_geometry.h"

namespace farkv::bench {

struct RoundingScheme {
  enum class Kind {
    // The product's T2 without rows kept at full precision.
    kNoExceptions,
    // The Tiers paper's: one range for all keys, one for all values of a layer.
    // The paper's tensor is a layer's whole cold cache and is rounded again at
    // each event; here it is one page, once.
    kOneRange,
  };
  Kind kind = Kind::kNoExceptions;
  int bits = 8;  // or 4

  // Of one token, all layers and heads, scales included.
  double TokenBytes(const KvGeometry& geometry) const;
};

// Replaces each value by its code times scale plus minimum, one range for all:
// codes are rounded half to even (ALGORITHMS 11.1). `values` must be finite.
void RoundToOneRange(std::span<float> values, int bits);

// Rounds pages as a StoredRowsFilter is given them. Thread-safe.
class RowRounding {
 public:
  RowRounding(RoundingScheme scheme, const KvGeometry& geometry)
      : scheme_(scheme), geometry_(geometry) {}

  void Apply(std::span<std::byte> rows);
  int64_t num_pages() const;
  // The first error: a page that could not be rounded is stored as it was.
  absl::Status status() const;

 private:
  absl::Status RoundLayer(std::span<std::byte> block) const;
  absl::Status RoundHeads(std::span<std::byte> block) const;
  void RoundTensors(std::span<std::byte> block) const;

  const RoundingScheme scheme_;
  const KvGeometry geometry_;
  mutable absl::Mutex mutex_;
  int64_t num_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The ranges (max - min over its channels) of the values that are stored, by
// which VaSE ranks rows. Thread-safe.
class ValueRanges {
 public:
  explicit ValueRanges(const KvGeometry& geometry);

  void Add(int page_index, std::span<const std::byte> rows);

  struct Summary {
    int64_t num_values = 0;
    double median = 0, p90 = 0, p99 = 0, largest = 0;
    // Page 0's share of all rows, and of the quarter with the largest ranges of
    // each layer and head.
    double first_page_rows = 0, first_page_in_top_quarter = 0;
  };
  // All zero when nothing was added.
  Summary Summarise() const;

 private:
  struct Range {
    float range = 0;
    bool in_first_page = false;
  };

  const KvGeometry geometry_;
  mutable absl::Mutex mutex_;
  std::vector<std::vector<Range>> by_head_ ABSL_GUARDED_BY(mutex_);  // [L * H]
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_ROUNDING_H_
