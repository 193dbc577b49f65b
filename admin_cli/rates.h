// Text forms of rates. A bare number is refused, as everywhere. Pure.
#ifndef FARKV_ADMIN_CLI_RATES_H_
#define FARKV_ADMIN_CLI_RATES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

// Bytes per second, of bits ("200Gb", "10Gbit/s", in powers of ten) or bytes
// ("300GB/s", "1.5TB/s", "64MiB/s"). INVALID_ARGUMENT with value and range.
absl::StatusOr<double> ParseByteRate(absl::string_view text);

// Operations per second: "400TFLOPS", "1.5PFLOPS".
absl::StatusOr<double> ParseFlops(absl::string_view text);

// "1.47GiB", "264KiB": three or more digits, for people.
std::string ShownBytes(double bytes);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_RATES_H_
