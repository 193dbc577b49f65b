// The natural logarithm of policy arithmetic: sampling keys and normal draws.
//
// Goal: the same bits on every machine and compiler: one order of separate
// double operations (+ - * /), no library call, no fused multiply-add. Relative
// error below 4e-16 (the unit test samples the range). Non-goal: speed.
//
// Zero gives -inf; negative numbers and NaN give NaN; +inf gives +inf.
//
// Method: x = 2^e m with m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1),
// log m = 2 atanh(s) by its power series; |s| < 0.1716, so that the first term
// left out is below 2^-57.
#ifndef FARKV_COMMON_POLICY_LOGARITHM_H_
#define FARKV_COMMON_POLICY_LOGARITHM_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace farkv {

inline double NaturalLog(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // ln 2 in two parts; the first has 32 bits, so that e * kLn2High is exact.
  constexpr double kLn2High = 0x1.62e42feep-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  constexpr int kTerms = 11;
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1022;
  // In [1/2, 1).
  double m =
      std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u);
  if (m < kSqrtHalf) {
    m *= 2;
    exponent -= 1;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double series = 0;
  for (int k = kTerms; k >= 1; --k) {
    series = (series + 1.0 / (2 * k + 1)) * square;
  }
  const double e = exponent;
  return e * kLn2High + ((2 * s + 2 * s * series) + e * kLn2Low);
}

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_LOGARITHM_H_
