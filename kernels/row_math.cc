#include "kernels/row_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "common/base/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_math.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {

// Sixteen partial sums, element i in sum i mod 16, then a halving tree: wide
// enough for every target, narrow enough for registers.
HWY_ATTR float SumOfSquares(const float* in, size_t width) {
  std::array<float, 16> sums{};
  size_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (size_t j = 0; j < 16; ++j) sums[j] += in[i + j] * in[i + j];
  }
  for (size_t j = 0; i + j < width; ++j) sums[j] += in[i + j] * in[i + j];
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

HWY_ATTR void RmsNorm(const float* in, const float* weight, float epsilon,
                      size_t width, float* out) {
  const float mean = SumOfSquares(in, width) / static_cast<float>(width);
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  for (size_t i = 0; i < width; ++i) out[i] = in[i] * scale * weight[i];
}

// exp(x) for x <= 0, within 2 ulp; below -87 it stays exp(-87), about the
// smallest normal number, so that no subnormal slows a loop down. exp(x) = 2^n
// exp(r) with |r| <= ln(2)/2; n = round(x / ln 2) by adding and subtracting 1.5
// * 2^23; exp(r) by its Taylor polynomial of degree 7, remainder below 1e-8.
HWY_ATTR inline float ExpOfNegative(float x) {
  constexpr auto kMost = std::bit_cast<uint32_t>(87.0f);
  constexpr float kRound = 12582912.0f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  const float clamped =
      -std::bit_cast<float>(magnitude < kMost ? magnitude : kMost);
  const float shifted = clamped * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto exponent = static_cast<uint32_t>(static_cast<int32_t>(n) + 127);
  return p * std::bit_cast<float>(exponent << 23);
}

// silu(g) = g * sigmoid(g), with the exponential of -|g| so that it cannot
// overflow: sigmoid(g) = 1 / (1 + e) for g >= 0, else e / (1 + e).
HWY_ATTR void SiluMultiply(const float* gate, const float* up, size_t count,
                           float* out) {
  // Chosen by bits, here and in ExpOfNegative: of comparisons of fp32, which
  // may trap, the compiler makes branches, and then no vectors.
  constexpr auto kOne = std::bit_cast<uint32_t>(1.0f);
  for (size_t i = 0; i < count; ++i) {
    const float g = gate[i];
    const float e = ExpOfNegative(-std::fabs(g));
    const uint32_t negative = 0u - (std::bit_cast<uint32_t>(g) >> 31);
    const auto numerator = std::bit_cast<float>(
        (std::bit_cast<uint32_t>(e) & negative) | (kOne & ~negative));
    out[i] = g * (numerator / (1.0f + e)) * up[i];
  }
}

HWY_ATTR void Add(float* x, const float* y, size_t count) {
  for (size_t i = 0; i < count; ++i) x[i] += y[i];
}

HWY_ATTR void Rotate(float* head, const float* cosines, const float* sines,
                     size_t half) {
  for (size_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[i + half];
    head[i] = a * cosines[i] - b * sines[i];
    head[i + half] = b * cosines[i] + a * sines[i];
  }
}

HWY_ATTR void ToBf16(const float* in, size_t count, uint16_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = FloatToBf16(in[i]);
}

HWY_ATTR void FromBf16(const uint16_t* in, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = Bf16ToFloat(in[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farkv {

HWY_EXPORT(RmsNorm);
HWY_EXPORT(SiluMultiply);
HWY_EXPORT(Add);
HWY_EXPORT(Rotate);
HWY_EXPORT(ToBf16);
HWY_EXPORT(FromBf16);

void RmsNormRow(const float* in, const float* weight, float epsilon,
                size_t width, float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(in, weight, epsilon, width, out);
}

void SiluMultiplyRow(const float* gate, const float* up, size_t count,
                     float* out) {
  HWY_DYNAMIC_DISPATCH(SiluMultiply)(gate, up, count, out);
}

void AddRow(float* x, const float* y, size_t count) {
  HWY_DYNAMIC_DISPATCH(Add)(x, y, count);
}

void RotateHead(float* head, const float* cosines, const float* sines,
                size_t half) {
  HWY_DYNAMIC_DISPATCH(Rotate)(head, cosines, sines, half);
}

void RowToBf16(const float* in, size_t count, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(ToBf16)(in, count, out);
}

void RowFromBf16(const uint16_t* in, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(FromBf16)(in, count, out);
}

}  // namespace farkv
#endif  // HWY_ONCE
