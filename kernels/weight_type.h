// How a weight is stored, and the sizes of the stored groups.
//
// kBf16 and kF32 are plain elements. The others are the group formats of GGUF
// files (ggml): a run of elements of one row shares scales, and a group's
// bytes here are exactly those of the file (little endian). With d and m fp16,
// q the stored integer and s, t small integers of a part of the group:
//   kQ8_0  32 elements, d q                    kQ4_0  32, d (q - 8)
//   kQ4_1  32 elements, d q + m
//   kQ4_K  256 elements in 8 parts of 32, d s q - m t
//   kQ6_K  256 elements in 16 parts of 16, d s (q - 32)
#ifndef FARKV_KERNELS_WEIGHT_TYPE_H_
#define FARKV_KERNELS_WEIGHT_TYPE_H_

#include <cstddef>
#include <cstdint>

namespace farkv {

enum class WeightType : uint8_t {
  kBf16,
  kF32,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ4_K,
  kQ6_K,
};

constexpr bool IsQuantized(WeightType type) {
  return type != WeightType::kBf16 && type != WeightType::kF32;
}

// Elements of one row that are stored together; a row holds whole groups.
constexpr int32_t GroupElements(WeightType type) {
  switch (type) {
    case WeightType::kBf16:
    case WeightType::kF32:
      return 1;
    case WeightType::kQ8_0:
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
      return 32;
    case WeightType::kQ4_K:
    case WeightType::kQ6_K:
      return 256;
  }
  return 0;
}

constexpr size_t GroupBytes(WeightType type) {
  switch (type) {
    case WeightType::kBf16:
      return 2;
    case WeightType::kF32:
      return 4;
    case WeightType::kQ8_0:
      return 34;
    case WeightType::kQ4_0:
      return 18;
    case WeightType::kQ4_1:
      return 20;
    case WeightType::kQ4_K:
      return 144;
    case WeightType::kQ6_K:
      return 210;
  }
  return 0;
}

// Bytes of a stored row of `cols` elements, whole groups.
constexpr size_t StoredRowBytes(WeightType type, int32_t cols) {
  return static_cast<size_t>(cols / GroupElements(type)) * GroupBytes(type);
}

constexpr const char* WeightTypeName(WeightType type) {
  switch (type) {
    case WeightType::kBf16:
      return "BF16";
    case WeightType::kF32:
      return "F32";
    case WeightType::kQ8_0:
      return "Q8_0";
    case WeightType::kQ4_0:
      return "Q4_0";
    case WeightType::kQ4_1:
      return "Q4_1";
    case WeightType::kQ4_K:
      return "Q4_K";
    case WeightType::kQ6_K:
      return "Q6_K";
  }
  return "unknown";
}

}  // namespace farkv

#endif  // FARKV_KERNELS_WEIGHT_TYPE_H_
