#include "common/policy/rotation.h"

#include <cmath>

namespace farkv {
namespace {

// pi/2 = kHigh + kMiddle + kLow; the first two have 33 bits, so that n times
// them is exact for |n| < 2^20.
constexpr double kHigh = 0x1.921fb544p+0;
constexpr double kMiddle = 0x1.0b4611a6p-34;
constexpr double kLow = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr int kSeriesTerms = 9;

// sin r = r - r^3/3! + ..., cos r = 1 - r^2/2! + ..., from the last term back.
SineCosine OnQuarter(double r) {
  const double square = r * r;
  double sine = 1;
  double cosine = 1;
  for (int k = kSeriesTerms; k >= 1; --k) {
    sine = 1 - sine * square / (2.0 * k * (2.0 * k + 1));
    cosine = 1 - cosine * square / ((2.0 * k - 1) * (2.0 * k));
  }
  return {sine * r, cosine};
}

}  // namespace

SineCosine SineAndCosine(double x) {
  const double n = std::nearbyint(x * kTwoOverPi);
  const double r = ((x - n * kHigh) - n * kMiddle) - n * kLow;
  const SineCosine of_r = OnQuarter(r);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return of_r;
    case 1:
      return {of_r.cosine, -of_r.sine};
    case 2:
      return {-of_r.sine, -of_r.cosine};
    default:
      return {-of_r.cosine, of_r.sine};
  }
}

}  // namespace farkv
