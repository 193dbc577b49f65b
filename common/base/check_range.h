// Checks of numbers that came from outside, with one wording for all. Pure.
#ifndef FARKV_COMMON_BASE_CHECK_RANGE_H_
#define FARKV_COMMON_BASE_CHECK_RANGE_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace farkv {

// INVALID_ARGUMENT "NAME is VALUE, must lie in [LOW, HIGH]" outside the bounds,
// which are allowed themselves. `name`: a flag or a field as its user wrote it.
template <typename T>
absl::Status CheckRange(absl::string_view name, T value,
                        std::type_identity_t<T> low,
                        std::type_identity_t<T> high) {
  if (value >= low && value <= high) return absl::OkStatus();
  if constexpr (std::is_same_v<T, absl::Duration>) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is ", absl::FormatDuration(value), ", must lie in [",
        absl::FormatDuration(low), ", ", absl::FormatDuration(high), "]"));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is ", value, ", must lie in [", low, ", ", high, "]"));
  }
}

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_CHECK_RANGE_H_
