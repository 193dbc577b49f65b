// Rows of activations to int8. Every step is one exactly rounded operation on
// its own element, so every target gives the same bits.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/matmul_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_quantize.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv::matmul {
namespace HWY_NAMESPACE {

// The bits of the largest magnitude: integers order like the magnitudes, with
// infinity and then NaN above all.
HWY_ATTR inline uint32_t MaxMagnitudeBits(const float* in) {
  uint32_t largest[16] = {};
  for (size_t begin = 0; begin < 32; begin += 16) {
    for (size_t i = 0; i < 16; ++i) {
      uint32_t bits;
      std::memcpy(&bits, in + begin + i, sizeof(bits));
      bits &= 0x7fffffffu;
      largest[i] = bits > largest[i] ? bits : largest[i];
    }
  }
  uint32_t most = 0;
  for (size_t i = 0; i < 16; ++i) most = largest[i] > most ? largest[i] : most;
  return most;
}

HWY_ATTR inline void QuantizePart(const float* in, int8_t* quants, float* scale,
                                  int32_t* sums) {
  constexpr float kSmallest = 0x1p-100f;
  // Adding it rounds to an integer, nearest even, in the low bits.
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  constexpr int32_t kRoundBits = 0x4b400000;
  const auto magnitude = std::bit_cast<float>(MaxMagnitudeBits(in));
  float inverse = 0.0f;
  if (!std::isfinite(magnitude)) {
    *scale = std::numeric_limits<float>::quiet_NaN();
    std::memset(quants, 0, 32);
    sums[0] = sums[1] = 0;
    return;
  }
  *scale = 0.0f;
  if (magnitude >= kSmallest) {
    *scale = magnitude / 127.0f;
    inverse = 127.0f / magnitude;
  }
  int32_t rounded[32];
  for (size_t i = 0; i < 32; ++i) {
    rounded[i] = std::bit_cast<int32_t>(in[i] * inverse + kRound) - kRoundBits;
  }
  int32_t low = 0, high = 0;
  for (size_t i = 0; i < 16; ++i) {
    low += rounded[i];
    high += rounded[16 + i];
  }
  sums[0] = low;
  sums[1] = high;
  for (size_t i = 0; i < 32; ++i) quants[i] = static_cast<int8_t>(rounded[i]);
}

HWY_ATTR void QuantizeParts(const float* in, int32_t cols, std::byte* row) {
  const QuantizedRowLayout layout(cols);
  auto* quants = reinterpret_cast<int8_t*>(row);
  auto* scales = reinterpret_cast<float*>(row + layout.scales);
  auto* sums = reinterpret_cast<int32_t*>(row + layout.sums);
  for (int32_t k = 0; k < cols; k += 32) {
    QuantizePart(in + k, quants + k, scales + k / 32, sums + k / 16);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv::matmul
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farkv::matmul {

HWY_EXPORT(QuantizeParts);

void QuantizeRow(const float* in, int32_t cols, std::byte* row) {
  HWY_DYNAMIC_DISPATCH(QuantizeParts)(in, cols, row);
}

}  // namespace farkv::matmul
#endif  // HWY_ONCE
