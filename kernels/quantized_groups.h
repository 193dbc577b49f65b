// Reading the group formats of weight_type.h. A part is 32 elements of one
// group, the unit in which products quantise activations; `group` points to
// the stored bytes at any alignment. Pure.
#ifndef FARKV_KERNELS_QUANTIZED_GROUPS_H_
#define FARKV_KERNELS_QUANTIZED_GROUPS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.h"

namespace farkv {

inline constexpr int32_t kPartElements = 32;

// What is subtracted from a part's integers, which are stored unsigned here:
// the two's complement of kQ8_0 appears with its sign bit flipped.
constexpr int32_t QuantOffset(WeightType type) {
  switch (type) {
    case WeightType::kQ8_0:
      return 128;
    case WeightType::kQ4_0:
      return 8;
    case WeightType::kQ6_K:
      return 32;
    default:
      return 0;
  }
}

// The 32 unsigned integers of part `part`.
void ReadQuants(WeightType type, const std::byte* group, int32_t part,
                uint8_t* quants);

// The integer scale (s, one for each half of the part) and minimum (t) of a
// part; 1 and 1 where the format has none.
struct PartScales {
  int8_t scale[2] = {1, 1};
  uint8_t minimum = 1;
};
PartScales ReadPartScales(WeightType type, const std::byte* group,
                          int32_t part);

// The fp16 bits d and m of a group; m is 0 where the format has none.
struct GroupScales {
  uint16_t scale = 0;
  uint16_t minimum = 0;
};
GroupScales ReadGroupScales(WeightType type, const std::byte* group);

// A stored row of `cols` elements, whole groups of a quantised type, in fp32.
void DequantizeRow(WeightType type, const std::byte* row, int32_t cols,
                   float* out);

}  // namespace farkv

#endif  // FARKV_KERNELS_QUANTIZED_GROUPS_H_
