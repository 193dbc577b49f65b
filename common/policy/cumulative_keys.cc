#include "common/policy/cumulative_keys.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

double SumKey(int64_t sum) {
  return sum >= 0 ? static_cast<double>(sum)
                  : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

absl::Status SetCumulativeKeys(const EvictionInput& input, const char* policy,
                               RankedRows& ranked) {
  FARKV_RETURN_IF_ERROR(input.Validate());
  for (size_t i = 0; i < ranked.rows.size(); ++i) {
    EvictionRow& row = ranked.rows[i];
    if (!input.cumulative.empty()) {
      row.key = SumKey(input.cumulative[i]);
    } else if (i < input.mass.size()) {
      row.key = input.mass[i];
    } else if (!row.pinned) {
      return absl::InvalidArgumentError(absl::StrCat(
          policy, " needs cumulative attention or mass of position ",
          row.position));
    }
  }
  return absl::OkStatus();
}

}  // namespace farkv
