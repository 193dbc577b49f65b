#include "kernels/quantized_groups.h"

#include "common/base/endian.h"
#include "common/base/half.h"

namespace farkv {
namespace {

uint8_t ByteAt(const std::byte* bytes, int32_t index) {
  return std::to_integer<uint8_t>(bytes[index]);
}

// Offsets in the stored groups.
constexpr int32_t kQ8Quants = 2;
constexpr int32_t kQ40Quants = 2;
constexpr int32_t kQ41Minimum = 2;
constexpr int32_t kQ41Quants = 4;
constexpr int32_t kQ4KMinimum = 2;
constexpr int32_t kQ4KScales = 4;
constexpr int32_t kQ4KQuants = 16;
constexpr int32_t kQ6KHigh = 128;
constexpr int32_t kQ6KScales = 192;
constexpr int32_t kQ6KScale = 208;

// 16 bytes hold elements 0..15 in their low and 16..31 in their high halves.
void ReadNibbles(const std::byte* from, uint8_t* quants) {
  for (int32_t i = 0; i < 16; ++i) {
    const uint8_t byte = ByteAt(from, i);
    quants[i] = byte & 0xf;
    quants[16 + i] = static_cast<uint8_t>(byte >> 4);
  }
}

// 32 bytes hold an even part in their low and the next in their high halves.
void ReadQ4K(const std::byte* group, int32_t part, uint8_t* quants) {
  const std::byte* from = group + kQ4KQuants + 32 * (part / 2);
  const int shift = part % 2 * 4;
  for (int32_t i = 0; i < 32; ++i) {
    quants[i] = (ByteAt(from, i) >> shift) & 0xf;
  }
}

// For each half of the group 64 bytes of low bits, whose four quarters
// (low, low, high, high halves of 32 bytes each) are four parts, and 32 bytes
// with two high bits of each of the four.
void ReadQ6K(const std::byte* group, int32_t part, uint8_t* quants) {
  const int32_t half = part / 4;
  const int32_t quarter = part % 4;
  const std::byte* low = group + 64 * half + 32 * (quarter % 2);
  const std::byte* high = group + kQ6KHigh + 32 * half;
  for (int32_t i = 0; i < 32; ++i) {
    const int low_bits = (ByteAt(low, i) >> (quarter / 2 * 4)) & 0xf;
    const int high_bits = (ByteAt(high, i) >> (2 * quarter)) & 3;
    quants[i] = static_cast<uint8_t>(low_bits | high_bits << 4);
  }
}

// Eight 6-bit scales and eight 6-bit minima in 12 bytes: the first four of
// each in the low bits of bytes 0..3 and 4..7, whose two high bits continue
// the halves of bytes 8..11.
PartScales ReadQ4KScales(const std::byte* bytes, int32_t part) {
  int scale, minimum;
  if (part < 4) {
    scale = ByteAt(bytes, part) & 63;
    minimum = ByteAt(bytes, part + 4) & 63;
  } else {
    const uint8_t low = ByteAt(bytes, part + 4);
    scale = (low & 0xf) | (ByteAt(bytes, part - 4) >> 6) << 4;
    minimum = (low >> 4) | (ByteAt(bytes, part) >> 6) << 4;
  }
  const auto scale8 = static_cast<int8_t>(scale);
  return {{scale8, scale8}, static_cast<uint8_t>(minimum)};
}

}  // namespace

void ReadQuants(WeightType type, const std::byte* group, int32_t part,
                uint8_t* quants) {
  switch (type) {
    case WeightType::kQ8_0:
      for (int32_t i = 0; i < 32; ++i) {
        quants[i] = ByteAt(group, kQ8Quants + i) ^ 0x80;
      }
      return;
    case WeightType::kQ4_0:
      return ReadNibbles(group + kQ40Quants, quants);
    case WeightType::kQ4_1:
      return ReadNibbles(group + kQ41Quants, quants);
    case WeightType::kQ4_K:
      return ReadQ4K(group, part, quants);
    case WeightType::kQ6_K:
      return ReadQ6K(group, part, quants);
    case WeightType::kBf16:
    case WeightType::kF32:
      return;
  }
}

PartScales ReadPartScales(WeightType type, const std::byte* group,
                          int32_t part) {
  if (type == WeightType::kQ4_K) {
    return ReadQ4KScales(group + kQ4KScales, part);
  }
  if (type != WeightType::kQ6_K) return {};
  // Parts of 16: those of an element's 32 stand next to each other.
  const std::byte* scales = group + kQ6KScales + 2 * part;
  return {{static_cast<int8_t>(ByteAt(scales, 0)),
           static_cast<int8_t>(ByteAt(scales, 1))},
          1};
}

GroupScales ReadGroupScales(WeightType type, const std::byte* group) {
  switch (type) {
    case WeightType::kQ8_0:
    case WeightType::kQ4_0:
      return {LoadLe<uint16_t>(group), 0};
    case WeightType::kQ4_1:
      return {LoadLe<uint16_t>(group), LoadLe<uint16_t>(group + kQ41Minimum)};
    case WeightType::kQ4_K:
      return {LoadLe<uint16_t>(group), LoadLe<uint16_t>(group + kQ4KMinimum)};
    case WeightType::kQ6_K:
      return {LoadLe<uint16_t>(group + kQ6KScale), 0};
    case WeightType::kBf16:
    case WeightType::kF32:
      break;
  }
  return {};
}

void DequantizeRow(WeightType type, const std::byte* row, int32_t cols,
                   float* out) {
  const int32_t group_elements = GroupElements(type);
  const int32_t offset = QuantOffset(type);
  for (int32_t k = 0; k < cols; k += group_elements) {
    const GroupScales group_scales = ReadGroupScales(type, row);
    const float d = HalfToFloat(group_scales.scale);
    float m = HalfToFloat(group_scales.minimum);
    if (type == WeightType::kQ4_K) m = -m;  // d s q - m t
    for (int32_t part = 0; part < group_elements / kPartElements; ++part) {
      uint8_t quants[kPartElements];
      ReadQuants(type, row, part, quants);
      const PartScales scales = ReadPartScales(type, row, part);
      const float minimum = m * scales.minimum;
      for (int32_t i = 0; i < kPartElements; ++i) {
        const float scale = d * scales.scale[i / 16];
        *out++ = scale * static_cast<float>(quants[i] - offset) + minimum;
      }
    }
    row += GroupBytes(type);
  }
}

}  // namespace farkv
