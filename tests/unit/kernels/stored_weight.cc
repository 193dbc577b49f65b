#include "tests/unit/kernels/stored_weight.h"

#include <algorithm>
#include <cmath>

#include "common/base/random.h"

namespace farkv {
namespace {

using Bytes = const std::byte*;

int At(Bytes bytes, int index) { return std::to_integer<int>(bytes[index]); }

double Half(Bytes bytes) {
  const int bits = At(bytes, 0) | At(bytes, 1) << 8;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -24)
                               : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Offsets of the fp16 scales in a group, -1 for none.
struct ScaleOffsets {
  int scale;
  int minimum;
};

ScaleOffsets OffsetsOf(WeightType type) {
  switch (type) {
    case WeightType::kQ4_1:
    case WeightType::kQ4_K:
      return {0, 2};
    case WeightType::kQ6_K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

double DecodeQ4K(Bytes group, int i) {
  const Bytes scales = group + 4;
  const int part = i / 32;
  int scale = At(scales, part % 4) & 63;
  int minimum = At(scales, 4 + part % 4) & 63;
  if (part >= 4) {
    const int both = At(scales, 8 + part % 4);
    scale = both % 16 + 16 * (At(scales, part % 4) >> 6);
    minimum = both / 16 + 16 * (At(scales, 4 + part % 4) >> 6);
  }
  const int byte = At(group, 16 + 32 * (part / 2) + i % 32);
  const int quant = part % 2 == 0 ? byte % 16 : byte / 16;
  return Half(group) * scale * quant - Half(group + 2) * minimum;
}

// Element 128 h + 32 j + l: low bits in nibble j / 2 of byte 64 h + 32 (j % 2)
// + l, high bits at 2 j of byte 128 + 32 h + l, scale 8 h + 2 j + l / 16.
double DecodeQ6K(Bytes group, int i) {
  const int h = i / 128, j = i % 128 / 32, l = i % 32;
  const int low = At(group, 64 * h + 32 * (j % 2) + l) >> (j / 2 * 4) & 15;
  const int high = At(group, 128 + 32 * h + l) >> (2 * j) & 3;
  const int scale =
      static_cast<int8_t>(At(group, 192 + 8 * h + 2 * j + l / 16));
  return Half(group + 208) * scale * (low + 16 * high - 32);
}

double Decode(WeightType type, Bytes group, int i) {
  const auto nibble = [i](Bytes quants) {
    return i < 16 ? At(quants, i) % 16 : At(quants, i - 16) / 16;
  };
  switch (type) {
    case WeightType::kQ8_0:
      return Half(group) * static_cast<int8_t>(At(group, 2 + i));
    case WeightType::kQ4_0:
      return Half(group) * (nibble(group + 2) - 8);
    case WeightType::kQ4_1:
      return Half(group) * nibble(group + 4) + Half(group + 2);
    case WeightType::kQ4_K:
      return DecodeQ4K(group, i);
    case WeightType::kQ6_K:
      return DecodeQ6K(group, i);
    default:
      return 0;
  }
}

void DecodeAll(StoredWeight& weight) {
  const int32_t elements = GroupElements(weight.type);
  const size_t bytes = GroupBytes(weight.type);
  weight.values.clear();
  for (size_t at = 0; at < weight.bytes.size(); at += bytes) {
    for (int i = 0; i < elements; ++i) {
      weight.values.push_back(Decode(weight.type, &weight.bytes[at], i));
    }
  }
}

void SetHalf(std::byte* to, uint64_t bits) {
  to[0] = static_cast<std::byte>(bits & 0xff);
  to[1] = static_cast<std::byte>(bits >> 8 & 0xff);
}

// Exponents from 2^-10 to 2^-5; one in eight is subnormal or zero.
uint64_t RandomScaleBits(uint64_t draw) {
  const uint64_t sign = (draw & 1) << 15;
  const uint64_t fraction = draw >> 1 & 1023;
  const uint64_t exponent = draw >> 11 & 7;
  if (exponent >= 6) return sign | (exponent == 6 ? fraction : 0);
  return sign | (exponent + 5) << 10 | fraction;
}

StoredWeight Empty(WeightType type, int32_t rows, int32_t cols) {
  StoredWeight weight{type, rows, cols, {}, {}};
  weight.bytes.resize(static_cast<size_t>(rows) * StoredRowBytes(type, cols));
  return weight;
}

}  // namespace

StoredWeight RandomStoredWeight(WeightType type, int32_t rows, int32_t cols,
                                uint64_t seed) {
  StoredWeight weight = Empty(type, rows, cols);
  uint64_t draw = 0;
  for (std::byte& byte : weight.bytes) {
    byte = static_cast<std::byte>(SplitMix64At(seed, draw++) & 0xff);
  }
  const ScaleOffsets offsets = OffsetsOf(type);
  for (size_t at = 0; at < weight.bytes.size(); at += GroupBytes(type)) {
    for (const int offset : {offsets.scale, offsets.minimum}) {
      if (offset < 0) continue;
      SetHalf(&weight.bytes[at + static_cast<size_t>(offset)],
              RandomScaleBits(SplitMix64At(seed, draw++)));
    }
  }
  DecodeAll(weight);
  return weight;
}

StoredWeight ConstantStoredWeight(WeightType type, int32_t rows, int32_t cols,
                                  uint8_t quants, uint8_t scales) {
  constexpr uint64_t kOne = 15 << 10;
  StoredWeight weight = Empty(type, rows, cols);
  std::fill(weight.bytes.begin(), weight.bytes.end(), std::byte{quants});
  const ScaleOffsets offsets = OffsetsOf(type);
  for (size_t at = 0; at < weight.bytes.size(); at += GroupBytes(type)) {
    std::byte* group = &weight.bytes[at];
    if (type == WeightType::kQ6_K) {
      std::fill(group + 192, group + 208, std::byte{scales});
    }
    SetHalf(group + offsets.scale, kOne);
    if (offsets.minimum >= 0) SetHalf(group + offsets.minimum, kOne);
  }
  DecodeAll(weight);
  return weight;
}

}  // namespace farkv
