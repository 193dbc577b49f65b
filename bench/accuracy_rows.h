// The settings that the accuracy bench compares: one row each. Plain values.
#ifndef FARKV_BENCH_ACCURACY_ROWS_H_
#define FARKV_BENCH_ACCURACY_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/accuracy_rounding.h"
#include "common/policy/destruction_event.h"
#include "common/policy/placement_settings.h"
#include "common/policy/selection.h"
#include "gpu_worker/engine/engine_options.h"

namespace farkv::bench {

// Sizes of the policies. The papers' 64 and 128 are made for chains of some
// thousand tokens; ALGORITHMS 14.1 scales them to chains of some hundred.
struct PolicySizes {
  int64_t sinks = 4, recent = 16, interval = 16;
};
inline constexpr PolicySizes kChainSizes = {};
// For texts of a thousand tokens.
inline constexpr PolicySizes kTextSizes = {4, 64, 64};

struct AccuracyRow {
  std::string name;
  PolicySizes sizes;
  int32_t hbm_ratio = kRatioOne;
  int32_t t2_ratio = 0;
  int t2_bits = 8;
  // Instead of T2: rows are rounded in a way that nodes do not have.
  std::optional<RoundingScheme> rounding;
  bool measures_ranges = false;  // of the values that are stored
  // What destroys, in its scaled form, and how much of what follows the prompt
  // may stay. Budget of kFixed: `share` of the whole chain, known beforehand.
  std::optional<DestructionPolicy> policy;
  DestructionBudget budget;
  int32_t share = 0;  // kFixed, per 10,000
  PositionMode positions = PositionMode::kAbsolute;
  // What a step reads, with nothing destroyed; kNone: everything.
  SelectionSettings selection;

  bool is_full() const { return !uses_nodes() && is_exact(); }
  bool uses_nodes() const { return hbm_ratio < kRatioOne; }
  // Everything is read as it was written.
  bool is_exact() const {
    return !policy.has_value() && !is_rounded() && !selects();
  }
  bool selects() const { return selection.policy != SelectionPolicy::kNone; }
  bool is_rounded() const { return t2_ratio > 0 || rounding.has_value(); }
  const char* budget_kind() const;

  // Of one program; `policy` must be there.
  DestructionSettings Destruction(int64_t prompt_tokens,
                                  int64_t chain_tokens) const;
};

// Every row, "full" first.
std::vector<AccuracyRow> AllAccuracyRows(const PolicySizes& sizes);
// The named ones, "full" first whether named or not; a name that ends with *
// takes all that begin so. INVALID_ARGUMENT for one that is not there.
absl::StatusOr<std::vector<AccuracyRow>> ChooseAccuracyRows(
    const std::vector<std::string>& names, const PolicySizes& sizes);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_ROWS_H_
