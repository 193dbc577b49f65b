// IEEE 754 binary16 <-> float. Pure.
#ifndef FARKV_COMMON_BASE_HALF_H_
#define FARKV_COMMON_BASE_HALF_H_

#include <bit>
#include <cstdint>

namespace farkv {

inline constexpr float kMaxHalf = 65504.0f;

// Exact.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  }
  // Scaling by 2^112 moves the exponent's bias and renormalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1.0p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
}

// Toward zero; |value| <= kMaxHalf.
inline uint16_t FloatToHalfTowardZero(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x38800000u) {  // normal as a half
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
  }
  // Subnormal as a half: a whole number of 2^-24.
  const float steps = std::bit_cast<float>(magnitude) * 0x1.0p24f;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(steps));
}

// The largest half that is not above `value`, and the smallest that is not
// below; |value| <= kMaxHalf.
inline uint16_t FloatToHalfDown(float value) {
  const uint16_t half = FloatToHalfTowardZero(value);
  if (HalfToFloat(half) <= value) return half;
  return static_cast<uint16_t>(half + 1);  // negative: away from zero
}

inline uint16_t FloatToHalfUp(float value) {
  const uint16_t half = FloatToHalfTowardZero(value);
  if (HalfToFloat(half) >= value) return half;
  return static_cast<uint16_t>(half + 1);  // positive: away from zero
}

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_HALF_H_
