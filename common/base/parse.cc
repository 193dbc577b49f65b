#include "common/base/parse.h"

#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace farkv {
namespace {

struct Unit {
  const char* suffix;
  uint64_t bytes;
};

// Longer suffixes first, because "B" ends every other one.
constexpr std::array<Unit, 9> kUnits = {{{"TiB", 1ull << 40},
                                         {"GiB", 1ull << 30},
                                         {"MiB", 1ull << 20},
                                         {"KiB", 1ull << 10},
                                         {"TB", 1000000000000ull},
                                         {"GB", 1000000000ull},
                                         {"MB", 1000000ull},
                                         {"KB", 1000ull},
                                         {"B", 1}}};

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  for (const Unit& unit : kUnits) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, unit.suffix)) continue;
    uint64_t count = 0;
    if (number.empty() || !absl::SimpleAtoi(number, &count)) break;
    if (count > std::numeric_limits<uint64_t>::max() / unit.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("size \"", text, "\" does not fit 64 bits"));
    }
    return count * unit.bytes;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "size \"", text, "\" must be a whole number with a unit, as in 64GiB"));
}

std::string FormatBytes(uint64_t bytes) {
  for (size_t i = 0; i < 4; ++i) {
    if (bytes != 0 && bytes % kUnits[i].bytes == 0) {
      return absl::StrCat(bytes / kUnits[i].bytes, kUnits[i].suffix);
    }
  }
  return absl::StrCat(bytes, "B");
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) ||
      duration <= absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("duration \"", text,
                     "\" must be positive, finite and carry a unit, as in "
                     "500ms"));
  }
  return duration;
}

absl::StatusOr<int32_t> ParseRatio(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value >= 0.0 && value <= 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ratio \"", text, "\" must lie in [0, 1]"));
  }
  return static_cast<int32_t>(std::lround(value * 10000.0));
}

}  // namespace farkv
