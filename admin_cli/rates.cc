#include "admin_cli/rates.h"

#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

// A kilobyte, and an exabyte, per second.
constexpr double kLeast = 1e3, kMost = 1e18;

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kByteRates[] = {{"kb", 1e3 / 8},
                               {"Mb", 1e6 / 8},
                               {"Gb", 1e9 / 8},
                               {"Tb", 1e12 / 8},
                               {"kB", 1e3},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", 1 << 10},
                               {"MiB", 1 << 20},
                               {"GiB", 1 << 30},
                               {"TiB", double{1ull << 40}}};
constexpr Unit kFlops[] = {{"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}};

absl::StatusOr<double> Parse(absl::string_view what, absl::string_view text,
                             absl::string_view typed,
                             std::span<const Unit> units,
                             absl::string_view example) {
  const size_t end = text.find_first_not_of("0123456789.");
  double value = 0;
  const bool numeric = end != absl::string_view::npos && end > 0 &&
                       absl::SimpleAtod(text.substr(0, end), &value);
  for (const Unit& unit : units) {
    if (!numeric || text.substr(end) != unit.name) continue;
    const double rate = value * unit.factor;
    if (rate >= kLeast && rate <= kMost) return rate;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", ShownText(std::string(typed)), " is ", rate,
                     " per second, must lie in [1e3, 1e18]"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", ShownText(std::string(typed)),
                   " must be a number with a unit, as in ", example));
}

}  // namespace

absl::StatusOr<double> ParseByteRate(absl::string_view text) {
  absl::string_view rest = text;
  absl::ConsumeSuffix(&rest, "/s");
  if (absl::EndsWith(rest, "bit")) rest.remove_suffix(2);
  return Parse("rate", rest, text, kByteRates, "200Gb or 300GB/s");
}

absl::StatusOr<double> ParseFlops(absl::string_view text) {
  return Parse("rate", text, text, kFlops, "400TFLOPS");
}

std::string ShownBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.3g%s", bytes, kUnits[unit]);
}

}  // namespace farkv
