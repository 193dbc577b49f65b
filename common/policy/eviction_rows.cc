#include "common/policy/eviction_rows.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using Iterator = std::vector<EvictionRow>::iterator;

bool IsBroken(const EvictionRow& row) {
  return !(row.key < std::numeric_limits<double>::infinity()) ||
         !(row.measure < std::numeric_limits<float>::infinity());
}

bool Younger(const EvictionRow& a, const EvictionRow& b) {
  return a.position > b.position;
}

bool LargerMeasure(const EvictionRow& a, const EvictionRow& b) {
  if (a.measure != b.measure) return a.measure > b.measure;
  return Younger(a, b);
}

bool LargerKey(const EvictionRow& a, const EvictionRow& b) {
  if (a.key != b.key) return a.key > b.key;
  return Younger(a, b);
}

// Moves the `count` first of [begin, end) to the front and returns their end.
template <typename Before>
Iterator TakeFirst(Iterator begin, Iterator end, int64_t count, Before before) {
  if (count >= end - begin) return end;
  const Iterator middle = begin + count;
  if (count > 0) std::nth_element(begin, middle, end, before);
  return middle;
}

absl::Status CheckCounts(int64_t num_pinned, int64_t num_by_measure,
                         int64_t num_kept) {
  if (num_kept < 0 || num_by_measure < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("eviction: num_kept is ", num_kept, " and num_by_measure ",
                     num_by_measure, ", must not be negative"));
  }
  if (num_pinned > num_kept) {
    return absl::InvalidArgumentError(absl::StrCat("eviction: ", num_pinned,
                                                   " rows are pinned but only ",
                                                   num_kept, " may stay"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvictionDecision> Choose(std::vector<EvictionRow> rows,
                                        int64_t num_by_measure,
                                        int64_t num_kept) {
  const Iterator begin = rows.begin();
  const Iterator pinned_end = std::partition(
      begin, rows.end(), [](const EvictionRow& row) { return row.pinned; });
  if (absl::Status status =
          CheckCounts(pinned_end - begin, num_by_measure, num_kept);
      !status.ok()) {
    return status;
  }
  const Iterator broken_end = std::partition(pinned_end, rows.end(), IsBroken);
  EvictionDecision decision;
  decision.num_non_finite = broken_end - pinned_end;
  const auto left = [&](Iterator from) { return num_kept - (from - begin); };
  Iterator end = TakeFirst(pinned_end, broken_end, left(pinned_end), Younger);
  if (end == broken_end) {
    end = TakeFirst(end, rows.end(), std::min(num_by_measure, left(end)),
                    LargerMeasure);
    end = TakeFirst(end, rows.end(), left(end), LargerKey);
  }
  for (Iterator row = begin; row != end; ++row) {
    decision.kept.push_back(row->position);
  }
  std::sort(decision.kept.begin(), decision.kept.end());
  return decision;
}

absl::Status CheckPositions(const std::vector<EvictionRow>& rows) {
  std::vector<int64_t> positions;
  positions.reserve(rows.size());
  for (const EvictionRow& row : rows) positions.push_back(row.position);
  std::sort(positions.begin(), positions.end());
  const auto twice = std::adjacent_find(positions.begin(), positions.end());
  if (twice == positions.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("eviction: position ", *twice, " is ranked twice"));
}

}  // namespace

absl::StatusOr<EvictionDecision> ChooseRows(const RankedRows& ranked,
                                            int64_t num_kept) {
  const std::span<const EvictionRow> all = ranked.rows;
  return MergeDecisions({&all, 1}, ranked.num_by_measure, num_kept);
}

absl::StatusOr<EvictionDecision> MergeDecisions(
    std::span<const std::span<const EvictionRow>> parties,
    int64_t num_by_measure, int64_t num_kept) {
  std::vector<EvictionRow> rows;
  for (const std::span<const EvictionRow> party : parties) {
    rows.insert(rows.end(), party.begin(), party.end());
  }
  if (absl::Status status = CheckPositions(rows); !status.ok()) return status;
  return Choose(std::move(rows), num_by_measure, num_kept);
}

}  // namespace farkv
