// Products with quantised weights on any Highway target. Integers are widened
// to fp32, where the sums of a part are exact (at most 32 * 255 * 127 < 2^24;
// kQ6_K: 2 * 128 * 16 * 32 * 127 < 2^24), so that the order of their terms and
// a fused multiply-add do not matter. What rounds is written once, in AddPart:
//   out += (sum * d) * x, then out += m * (x * integers' sum)
// for each part in the order of K, d and m of the part, x its activations'
// scale; matmul_avx512vnni.cc does exactly the same.
#include "kernels/matmul_kernels.h"
#include "kernels/quantized_groups.h"

// As in matmul_hwy.cc.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_quantized_hwy.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv::matmul {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<FloatTag>;
using BitsTag = hn::RebindToUnsigned<FloatTag>;
using Bits = hn::Vec<BitsTag>;
constexpr size_t kLanes = hn::MaxLanes(FloatTag());
constexpr size_t kColumns = kPanelColumns;

HWY_INLINE Vector LoadHalves(const std::byte* from, size_t column) {
  const hn::Rebind<hwy::float16_t, FloatTag> tag;
  return hn::PromoteTo(
      FloatTag(),
      hn::LoadU(tag, reinterpret_cast<const hwy::float16_t*>(from) + column));
}

template <class T>
HWY_INLINE Vector LoadBytes(const std::byte* from, size_t column) {
  const hn::Rebind<T, FloatTag> tag;
  const hn::Rebind<int32_t, FloatTag> wide;
  return hn::ConvertTo(
      FloatTag(),
      hn::PromoteTo(wide,
                    hn::LoadU(tag, reinterpret_cast<const T*>(from) + column)));
}

// Four elements of K for the columns from `column` on, one in each byte.
template <WeightType kType>
HWY_INLINE Bits LoadStep(const std::byte* quants, size_t step, size_t column) {
  const BitsTag tag;
  const auto load = [&](size_t offset) HWY_ATTR {
    return hn::LoadU(
        tag, reinterpret_cast<const uint32_t*>(quants + offset) + column);
  };
  const Bits bytes = load(LowBytes(kType, step));
  if constexpr (kType == WeightType::kQ8_0) return bytes;
  const Bits low = hn::And(hn::ShiftRightSame(bytes, step < 4 ? 0 : 4),
                           hn::Set(tag, 0x0f0f0f0fu));
  if constexpr (kType != WeightType::kQ6_K) return low;
  const Bits high = hn::And(
      hn::ShiftRightSame(load(HighBytes(step)), static_cast<int>(step / 2 * 2)),
      hn::Set(tag, 0x03030303u));
  return hn::Or(low, hn::ShiftLeft<4>(high));
}

template <size_t kRows, size_t kVectors>
using Sums = Vector[kRows][kVectors];

// Adds the products of the steps [first, end) of a part. `x` is [kRows][32].
template <WeightType kType, size_t kRows, size_t kVectors>
HWY_INLINE void AddSteps(const std::byte* quants, size_t first, size_t end,
                         size_t column, const float* x,
                         Sums<kRows, kVectors>& sums) {
  const hn::RebindToSigned<FloatTag> integers;
  const Vector offset =
      hn::Set(FloatTag(), static_cast<float>(QuantOffset(kType)));
  for (size_t step = first; step < end; ++step) {
    Bits words[kVectors];
    for (size_t c = 0; c < kVectors; ++c) {
      words[c] = LoadStep<kType>(quants, step, column + c * kLanes);
    }
    for (size_t k = 4 * step; k < 4 * step + 4; ++k) {
      Vector weights[kVectors];
      for (size_t c = 0; c < kVectors; ++c) {
        const Bits quant = hn::And(words[c], hn::Set(BitsTag(), 0xffu));
        weights[c] = hn::Sub(
            hn::ConvertTo(FloatTag(), hn::BitCast(integers, quant)), offset);
        words[c] = hn::ShiftRight<8>(words[c]);
      }
      for (size_t r = 0; r < kRows; ++r) {
        const Vector broadcast = hn::Set(FloatTag(), x[r * 32 + k]);
        for (size_t c = 0; c < kVectors; ++c) {
          sums[r][c] = hn::MulAdd(weights[c], broadcast, sums[r][c]);
        }
      }
    }
  }
}

template <size_t kRows, size_t kVectors>
HWY_INLINE void Clear(Sums<kRows, kVectors>& sums) {
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kVectors; ++c) sums[r][c] = hn::Zero(FloatTag());
  }
}

// The exact integer sums of a part; kQ6_K: of its halves times their scales.
template <WeightType kType, size_t kRows, size_t kVectors>
HWY_INLINE void SumPart(const std::byte* part, size_t column, const float* x,
                        Sums<kRows, kVectors>& sums) {
  const std::byte* quants = part + LayoutOf(kType).part_scale_bytes;
  Clear<kRows, kVectors>(sums);
  if constexpr (kType != WeightType::kQ6_K) {
    AddSteps<kType, kRows, kVectors>(quants, 0, 8, column, x, sums);
    return;
  }
  for (size_t half = 0; half < 2; ++half) {
    Sums<kRows, kVectors> half_sums;
    Clear<kRows, kVectors>(half_sums);
    AddSteps<kType, kRows, kVectors>(quants, 4 * half, 4 * half + 4, column, x,
                                     half_sums);
    for (size_t c = 0; c < kVectors; ++c) {
      const Vector scale =
          LoadBytes<int8_t>(part + half * kColumns, column + c * kLanes);
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][c] = hn::MulAdd(half_sums[r][c], scale, sums[r][c]);
      }
    }
  }
}

// One part of one group of rows: the activations of each row.
template <size_t kRows>
struct Part {
  HWY_ALIGN float x[kRows * 32];
  float scales[kRows];
  float sums[kRows];  // scale * sum of the integers

  HWY_INLINE void Load(const Tile& tile, const QuantizedRowLayout& layout,
                       size_t index) {
    for (size_t r = 0; r < kRows; ++r) {
      const std::byte* row = tile.rows + r * tile.row_stride;
      const auto* quants = reinterpret_cast<const int8_t*>(row) + index * 32;
      for (size_t i = 0; i < 32; ++i) {
        x[r * 32 + i] = static_cast<float>(quants[i]);
      }
      scales[r] = reinterpret_cast<const float*>(row + layout.scales)[index];
      const auto* halves =
          reinterpret_cast<const int32_t*>(row + layout.sums) + 2 * index;
      sums[r] = scales[r] * static_cast<float>(halves[0] + halves[1]);
    }
  }
};

// The scales d and minima m of a part, from the group's head.
template <WeightType kType, size_t kVectors>
struct Scales {
  static constexpr bool kHasMinimum =
      kType == WeightType::kQ4_1 || kType == WeightType::kQ4_K;
  Vector scale[kVectors];
  Vector minimum[kVectors];

  HWY_INLINE void Load(const std::byte* head, const std::byte* part,
                       size_t column) {
    for (size_t c = 0; c < kVectors; ++c) {
      const size_t at = column + c * kLanes;
      scale[c] = LoadHalves(head, at);
      if constexpr (kHasMinimum) minimum[c] = LoadHalves(head + 128, at);
      if constexpr (kType == WeightType::kQ4_K) {
        scale[c] = hn::Mul(scale[c], LoadBytes<int8_t>(part, at));
        minimum[c] = hn::Neg(
            hn::Mul(minimum[c], LoadBytes<uint8_t>(part + kColumns, at)));
      }
    }
  }
};

// kVectors vectors of outputs for kRows rows, from `column` of the panel on.
template <WeightType kType, size_t kRows, size_t kVectors>
HWY_INLINE void MultiplyColumns(const Tile& tile, size_t column) {
  constexpr QuantizedLayout kLayout = LayoutOf(kType);
  const QuantizedRowLayout row_layout(tile.depth * GroupElements(kType));
  Sums<kRows, kVectors> out;
  Clear<kRows, kVectors>(out);
  Part<kRows> activations;
  Scales<kType, kVectors> scales;
  const std::byte* head = tile.panel;
  for (size_t group = 0; group < static_cast<size_t>(tile.depth); ++group) {
    const std::byte* part = head + kLayout.head_bytes;
    for (size_t p = 0; p < static_cast<size_t>(kLayout.num_parts); ++p) {
      activations.Load(tile, row_layout,
                       group * static_cast<size_t>(kLayout.num_parts) + p);
      Sums<kRows, kVectors> sums;
      SumPart<kType, kRows, kVectors>(part, column, activations.x, sums);
      scales.Load(head, part, column);
      for (size_t r = 0; r < kRows; ++r) {
        const Vector x = hn::Set(FloatTag(), activations.scales[r]);
        const Vector x_sum = hn::Set(FloatTag(), activations.sums[r]);
        for (size_t c = 0; c < kVectors; ++c) {
          // Not MulAdd: all targets round alike.
          out[r][c] = hn::Add(out[r][c],
                              hn::Mul(hn::Mul(sums[r][c], scales.scale[c]), x));
          if constexpr (Scales<kType, kVectors>::kHasMinimum) {
            out[r][c] = hn::Add(out[r][c], hn::Mul(scales.minimum[c], x_sum));
          }
        }
      }
      part += kLayout.part_bytes();
    }
    head += kLayout.bytes();
  }
  HWY_ALIGN float row[kVectors * kLanes];
  const size_t left = static_cast<size_t>(tile.num_columns) - column;
  const size_t count = left < kVectors * kLanes ? left : kVectors * kLanes;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kVectors; ++c) {
      hn::Store(out[r][c], FloatTag(), row + c * kLanes);
    }
    __builtin_memcpy(
        tile.out + static_cast<int64_t>(r) * tile.out_stride + column, row,
        count * sizeof(float));
  }
}

template <WeightType kType, size_t kRows>
HWY_NOINLINE void MultiplyRows(const Tile& tile) {
  constexpr size_t kVectors = kRows == 1 ? 4 : 2;
  for (size_t column = 0; column < static_cast<size_t>(tile.num_columns);
       column += kVectors * kLanes) {
    MultiplyColumns<kType, kRows, kVectors>(tile, column);
  }
}

// Two sizes only, because there are many types and targets.
template <WeightType kType>
void MultiplyAnyRows(Tile tile) {
  constexpr int32_t kMany = 3;
  while (tile.num_rows > 0) {
    const int32_t rows = tile.num_rows >= kMany ? kMany : 1;
    if (rows == kMany) {
      MultiplyRows<kType, kMany>(tile);
    } else {
      MultiplyRows<kType, 1>(tile);
    }
    tile.rows += static_cast<size_t>(rows) * tile.row_stride;
    tile.out += rows * tile.out_stride;
    tile.num_rows -= rows;
  }
}

void MultiplyQuantized(const Tile& tile) {
  switch (tile.type) {
    case WeightType::kQ8_0:
      return MultiplyAnyRows<WeightType::kQ8_0>(tile);
    case WeightType::kQ4_0:
      return MultiplyAnyRows<WeightType::kQ4_0>(tile);
    case WeightType::kQ4_1:
      return MultiplyAnyRows<WeightType::kQ4_1>(tile);
    case WeightType::kQ4_K:
      return MultiplyAnyRows<WeightType::kQ4_K>(tile);
    case WeightType::kQ6_K:
      return MultiplyAnyRows<WeightType::kQ6_K>(tile);
    case WeightType::kBf16:
    case WeightType::kF32:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv::matmul
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farkv::matmul {

HWY_EXPORT(MultiplyQuantized);

void MultiplyHighwayQuantized(const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyQuantized)(tile);
}

}  // namespace farkv::matmul
#endif  // HWY_ONCE
