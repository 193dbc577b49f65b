// IEEE 754 binary16 -> float, for weights stored as F16. Pure, exact.
#ifndef FARKV_GPU_WORKER_MODEL_HALF_H_
#define FARKV_GPU_WORKER_MODEL_HALF_H_

#include <bit>
#include <cstdint>

namespace farkv {

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

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_HALF_H_
