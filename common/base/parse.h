// Text forms of sizes, durations and ratios as flags take them (OPS 2). A bare
// number is refused because its unit would be a guess. Pure.
#ifndef FARKV_COMMON_BASE_PARSE_H_
#define FARKV_COMMON_BASE_PARSE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace farkv {

// "64GiB", "512MiB", "4KiB", "100B", also "GB", "MB", "KB" in powers of ten.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);
// 68719476736 -> "64GiB"; the largest binary unit that divides it.
std::string FormatBytes(uint64_t bytes);
// "500ms", "10s", "1m30s"; must be positive and finite.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);
// A decimal in [0, 1], held in 1/10,000 (ALGORITHMS 0.3): "0.3" -> 3000.
absl::StatusOr<int32_t> ParseRatio(absl::string_view text);

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_PARSE_H_
