// The choice that every destroying policy ends in: which rows of one layer and
// KV head stay. A policy ranks rows; this chooses among ranked rows, and
// because it needs nothing else, rows ranked by several parties (the nodes that
// hold them) are chosen among just as well. Pure, thread-safe.
#ifndef FARKV_COMMON_POLICY_EVICTION_ROWS_H_
#define FARKV_COMMON_POLICY_EVICTION_ROWS_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace farkv {

// One row as a policy ranked it.
struct EvictionRow {
  // The key of a row without weight: behind every other, taken youngest first.
  static constexpr double kLastKey = -std::numeric_limits<double>::infinity();

  int64_t position = 0;
  // Value range, projected norm; 0 where the policy has none.
  float measure = 0;
  // Larger stays. Keys that nodes compute are floats.
  double key = 0;
  // Stays whatever its numbers.
  bool pinned = false;
};

struct RankedRows {
  std::vector<EvictionRow> rows;
  // How many rows stay for their measure, before keys are looked at.
  int64_t num_by_measure = 0;
};

struct EvictionDecision {
  // Positions that stay, ascending; exactly min(num_kept, rows).
  std::vector<int64_t> kept;
  // Rows, not pinned, with a NaN or +inf as measure or key.
  int64_t num_non_finite = 0;
};

// Keeps, until `num_kept` are found:
//  1. the pinned rows,
//  2. rows with a number that is not finite (a broken score destroys nothing),
//  3. `num_by_measure` rows of the largest measure,
//  4. rows of the largest key.
// Equal numbers keep the younger row; among the second kind the younger stays.
// The order of `rows` does not matter.
//
// INVALID_ARGUMENT when more than num_kept rows are pinned, when num_kept or
// num_by_measure is negative, or when a position occurs twice.
absl::StatusOr<EvictionDecision> ChooseRows(const RankedRows& ranked,
                                            int64_t num_kept);

// The same over the rows of several parties, each of which ranked a part of the
// head's rows. Equal to ChooseRows over all of them.
absl::StatusOr<EvictionDecision> MergeDecisions(
    std::span<const std::span<const EvictionRow>> parties,
    int64_t num_by_measure, int64_t num_kept);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_EVICTION_ROWS_H_
