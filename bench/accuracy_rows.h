// The settings that the accuracy bench compares: one row each. Plain values.
#ifndef FARKV_BENCH_ACCURACY_ROWS_H_
#define FARKV_BENCH_ACCURACY_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/policy/destruction_event.h"
#include "common/policy/placement_settings.h"

namespace farkv::bench {

// Sizes of the policies, scaled to chains of some hundred tokens as 64 and 128
// are to some thousand (ALGORITHMS 14.1).
inline constexpr int64_t kSinks = 4, kRecent = 16, kInterval = 16;

struct AccuracyRow {
  std::string name;
  int32_t hbm_ratio = kRatioOne;
  int32_t t2_ratio = 0;
  int t2_bits = 8;
  // What destroys, in its scaled form, and how much of what follows the prompt
  // may stay. Budget of kFixed: `share` of the whole chain, known beforehand.
  std::optional<DestructionPolicy> policy;
  DestructionBudget budget;
  int32_t share = 0;  // kFixed, per 10,000

  bool is_full() const { return !uses_nodes() && !policy.has_value(); }
  bool uses_nodes() const { return hbm_ratio < kRatioOne; }
  // Nothing is destroyed and nothing is rounded.
  bool is_exact() const { return !policy.has_value() && t2_ratio == 0; }
  const char* budget_kind() const;

  // Of one program; `policy` must be there.
  DestructionSettings Destruction(int64_t prompt_tokens,
                                  int64_t chain_tokens) const;
};

// Every row, "full" first.
std::vector<AccuracyRow> AllAccuracyRows();
// The named ones, "full" first whether named or not; a name that ends with *
// takes all that begin so. INVALID_ARGUMENT for one that is not there.
absl::StatusOr<std::vector<AccuracyRow>> ChooseAccuracyRows(
    const std::vector<std::string>& names);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_ROWS_H_
