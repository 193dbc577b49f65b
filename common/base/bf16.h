// bfloat16 <-> float: round to nearest even, NaN stays NaN. Pure.
#ifndef FARKV_COMMON_BASE_BF16_H_
#define FARKV_COMMON_BASE_BF16_H_

#include <bit>
#include <cstdint>

namespace farkv {

inline float Bf16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  }
  const uint32_t rounding = 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((bits + rounding) >> 16);
}

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_BF16_H_
