// Products on any Highway target: fp32 weights, and bf16 weights widened to
// fp32. The order of the sums is that of matmul_kernels.h on every target;
// targets differ in their bits only by having a fused multiply-add or not.
#include "kernels/matmul_kernels.h"

// Accumulators are arrays of vectors, which scalable vectors cannot form:
// such CPUs run the fixed-width target.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul_hwy.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv::matmul {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<FloatTag>;
constexpr size_t kLanes = hn::MaxLanes(FloatTag());
constexpr size_t kColumns = kPanelColumns;

// A step of K as kParts vectors of weights for the same columns.
struct Bf16Weights {
  static constexpr size_t kParts = 2;
  template <size_t kPart>
  static HWY_INLINE Vector Load(const std::byte* panel, int32_t step,
                                size_t column) {
    const hn::RebindToUnsigned<FloatTag> tag;
    const auto pairs =
        hn::LoadU(tag, reinterpret_cast<const uint32_t*>(panel) +
                           static_cast<size_t>(step) * kColumns + column);
    if constexpr (kPart == 0) {
      return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
    } else {
      return hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(tag, 0xffff0000u)));
    }
  }
};

struct F32Weights {
  static constexpr size_t kParts = 1;
  template <size_t kPart>
  static HWY_INLINE Vector Load(const std::byte* panel, int32_t step,
                                size_t column) {
    return hn::LoadU(FloatTag(), reinterpret_cast<const float*>(panel) +
                                     static_cast<size_t>(step) * kColumns +
                                     column);
  }
};

template <size_t kRows, size_t kVectors, class Weights, size_t kPart>
HWY_INLINE void AddPart(const Tile& tile, int32_t step, size_t column,
                        Vector (&sums)[kRows][kVectors]) {
  Vector weights[kVectors];
  for (size_t c = 0; c < kVectors; ++c) {
    weights[c] =
        Weights::template Load<kPart>(tile.panel, step, column + c * kLanes);
  }
  for (size_t r = 0; r < kRows; ++r) {
    const auto* row =
        reinterpret_cast<const float*>(tile.rows + r * tile.row_stride);
    const Vector x = hn::Set(
        FloatTag(), row[static_cast<size_t>(step) * Weights::kParts + kPart]);
    for (size_t c = 0; c < kVectors; ++c) {
      sums[r][c] = hn::MulAdd(weights[c], x, sums[r][c]);
    }
  }
}

// kVectors vectors of outputs for kRows rows, from `column` of the panel on.
template <size_t kRows, size_t kVectors, class Weights>
HWY_INLINE void MultiplyColumns(const Tile& tile, size_t column) {
  Vector sums[kRows][kVectors];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kVectors; ++c) sums[r][c] = hn::Zero(FloatTag());
  }
  for (int32_t step = 0; step < tile.depth; ++step) {
    AddPart<kRows, kVectors, Weights, 0>(tile, step, column, sums);
    if constexpr (Weights::kParts == 2) {
      AddPart<kRows, kVectors, Weights, 1>(tile, step, column, sums);
    }
  }
  HWY_ALIGN float row[kVectors * kLanes];
  const size_t left = static_cast<size_t>(tile.num_columns) - column;
  const size_t count = left < kVectors * kLanes ? left : kVectors * kLanes;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kVectors; ++c) {
      hn::Store(sums[r][c], FloatTag(), row + c * kLanes);
    }
    __builtin_memcpy(
        tile.out + static_cast<int64_t>(r) * tile.out_stride + column, row,
        count * sizeof(float));
  }
}

// As many vectors per row as the registers hold: 32 of 64 bytes, else 16. One
// row takes the whole panel at once where it can, to read it in order.
template <size_t kRows, class Weights>
HWY_NOINLINE void MultiplyRows(const Tile& tile) {
  constexpr size_t kWanted = kRows == 1 ? 8 : (kLanes == 16 ? 4 : 2);
  constexpr size_t kVectors =
      kWanted * kLanes > kColumns ? kColumns / kLanes : kWanted;
  for (size_t column = 0; column < static_cast<size_t>(tile.num_columns);
       column += kVectors * kLanes) {
    MultiplyColumns<kRows, kVectors, Weights>(tile, column);
  }
}

template <class Weights>
void MultiplyAnyRows(const Tile& tile) {
  switch (tile.num_rows) {
    case 1:
      return MultiplyRows<1, Weights>(tile);
    case 2:
      return MultiplyRows<2, Weights>(tile);
    case 3:
      return MultiplyRows<3, Weights>(tile);
    case 4:
      return MultiplyRows<4, Weights>(tile);
    case 5:
      return MultiplyRows<5, Weights>(tile);
    default:
      return MultiplyRows<kTileRows, Weights>(tile);
  }
}

void MultiplyBf16(const Tile& tile) { MultiplyAnyRows<Bf16Weights>(tile); }
void MultiplyF32(const Tile& tile) { MultiplyAnyRows<F32Weights>(tile); }

}  // namespace HWY_NAMESPACE
}  // namespace farkv::matmul
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "common/base/bf16.h"

namespace farkv::matmul {

HWY_EXPORT(MultiplyBf16);
HWY_EXPORT(MultiplyF32);

void MultiplyHighwayBf16(const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyBf16)(tile);
}

void MultiplyHighwayF32(const Tile& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyF32)(tile);
}

void RoundRowHighwayBf16(const float* in, int32_t count, float* out) {
  for (int32_t i = 0; i < count; ++i) out[i] = Bf16ToFloat(FloatToBf16(in[i]));
}

}  // namespace farkv::matmul
#endif  // HWY_ONCE
