#include "common/policy/eviction_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/policy/placement_settings.h"

namespace farkv {
namespace {

absl::Status CheckRatio(const char* field, int32_t value) {
  if (value >= 0 && value <= kRatioOne) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", value, " per 10,000, must lie in [0, ", kRatioOne, "]"));
}

}  // namespace

absl::Status EvictionBudget::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRatio("per_event_ratio", per_event_ratio));
  return CheckRatio("cumulative_cap", cumulative_cap);
}

int64_t NumEvicted(const EvictionBudget& budget, int64_t unprotected,
                   int64_t generated, int64_t destroyed) {
  const int64_t wanted = ShareOf(budget.per_event_ratio, unprotected);
  const int64_t left = ShareOf(budget.cumulative_cap, generated) - destroyed;
  return std::max<int64_t>(0, std::min(wanted, left));
}

}  // namespace farkv
