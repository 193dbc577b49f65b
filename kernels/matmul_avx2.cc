// Products with quantised weights on AVX2: integer sums of a part by
// matmul_avx2_sums.h, then fp32 as in matmul_quantized_hwy.cc, operation by
// operation.
//
// The outputs of a tile stay in the first-level cache, not in registers: a part
// is worked off for all 64 columns before the next one is touched, so that
// weights come from memory front to back, and the 16 registers hold the sums of
// a few rows and columns. One load and store of an output for 32 products each
// costs little.
#include "kernels/matmul_kernels.h"
#include "kernels/quantized_groups.h"

#if defined(__x86_64__)
#include "kernels/matmul_avx2_sums.h"

namespace farkv::matmul {
namespace avx2 {
namespace {

FARKV_AVX2_INLINE __m256 LoadHalves(const std::byte* from) {
  return _mm256_cvtph_ps(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

FARKV_AVX2_INLINE __m256 SignedBytes(const std::byte* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadEightBytes(from)));
}

FARKV_AVX2_INLINE __m256 UnsignedBytes(const std::byte* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(LoadEightBytes(from)));
}

// The scale d and minimum m of a part for 8 columns.
template <WeightType kType>
struct Scales {
  static constexpr bool kHasMinimum =
      kType == WeightType::kQ4_1 || kType == WeightType::kQ4_K;
  __m256 scale;
  __m256 minimum;

  FARKV_AVX2_INLINE void Load(const std::byte* head, const std::byte* part,
                              size_t column) {
    scale = LoadHalves(head + 2 * column);
    if constexpr (kHasMinimum) {
      minimum = LoadHalves(head + 2 * (kPanelColumns + column));
    }
    if constexpr (kType == WeightType::kQ4_K) {
      scale = _mm256_mul_ps(scale, SignedBytes(part + column));
      minimum = _mm256_sub_ps(
          _mm256_setzero_ps(),
          _mm256_mul_ps(minimum, UnsignedBytes(part + kPanelColumns + column)));
    }
  }
};

template <size_t kRows>
struct Outputs {
  alignas(32) float values[kRows][kPanelColumns];

  // Adds a part's sums to 8 columns.
  template <WeightType kType, size_t kVectors>
  FARKV_AVX2_INLINE void Add(const Integers<kRows, kVectors>& sums, size_t c,
                             const Scales<kType>& scales, size_t column,
                             const PartRows<kRows>& rows) {
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      const __m256 x = _mm256_set1_ps(rows.scales[r]);
      const __m256 product =
          _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r][c]), scales.scale);
      __m256 out = _mm256_load_ps(&values[r][column]);
      out = _mm256_add_ps(out, _mm256_mul_ps(product, x));
      if constexpr (Scales<kType>::kHasMinimum) {
        const __m256 sum =
            _mm256_set1_ps(rows.scales[r] * static_cast<float>(rows.sum(r)));
        out = _mm256_add_ps(out, _mm256_mul_ps(scales.minimum, sum));
      }
      _mm256_store_ps(&values[r][column], out);
    }
  }

  void Store(const Tile& tile) const {
    for (size_t r = 0; r < kRows; ++r) {
      __builtin_memcpy(tile.out + static_cast<int64_t>(r) * tile.out_stride,
                       values[r],
                       static_cast<size_t>(tile.num_columns) * sizeof(float));
    }
  }
};

// How far ahead the panel itself is fetched when it is not in cache; without,
// the types of 4 bits read memory a fifth slower. Beyond the panel it is most
// often the next one that comes.
constexpr size_t kAheadBytes = 4096;

// kLocality: 3 into the first-level cache, 2 into the second.
template <int kLocality, size_t kBytes>
FARKV_AVX2_INLINE void Prefetch(const std::byte* from) {
#pragma GCC unroll 40
  for (size_t line = 0; line < kBytes; line += 64) {
    __builtin_prefetch(from + line, 0, kLocality);
  }
}

// All sizes take minutes to compile under a sanitizer.
#if defined(FARKV_SANITIZED)
constexpr bool kFewSizes = true;
#else
constexpr bool kFewSizes = false;
#endif

// One part for all columns of the tile.
template <WeightType kType, size_t kRows>
FARKV_AVX2_INLINE void AddPart(const std::byte* head, const std::byte* part,
                               size_t num_columns, PartRows<kRows>& rows,
                               Outputs<kRows>& outputs) {
  constexpr size_t kVectors = kFewSizes ? 1 : (kRows <= 2 ? 4 : 2);
  for (size_t column = 0; column < num_columns; column += kVectors * kLanes) {
    Hide(rows.quants);
    Hide(part);
    Hide(head);
    Integers<kRows, kVectors> sums;
    SumPart<kType, kRows, kVectors>(part, column, rows, sums);
#pragma GCC unroll 4
    for (size_t c = 0; c < kVectors; ++c) {
      const size_t at = column + kLanes * c;
      Scales<kType> scales;
      scales.Load(head, part, at);
      outputs.template Add<kType, kVectors>(sums, c, scales, at, rows);
    }
  }
}

template <WeightType kType, size_t kRows>
FARKV_AVX2 __attribute__((noinline)) void MultiplyRows(const Tile& tile) {
  constexpr QuantizedLayout kLayout = LayoutOf(kType);
  constexpr auto kParts = static_cast<size_t>(kLayout.num_parts);
  constexpr size_t kQuarterBytes = kLayout.part_bytes() / 4;
  const QuantizedRowLayout row_layout(tile.depth * GroupElements(kType));
  const auto num_columns = static_cast<size_t>(tile.num_columns);
  const size_t num_parts = static_cast<size_t>(tile.depth) * kParts;
  Outputs<kRows> outputs = {};
  const std::byte* head = tile.panel;
  const std::byte* next = tile.prefetch;
  for (size_t index = 0; index < num_parts;) {
    const std::byte* part = head + kLayout.head_bytes;
    for (size_t p = 0; p < kParts; ++p, ++index) {
      if (next != nullptr) {
        Prefetch<2, kQuarterBytes>(next);
        next += kQuarterBytes;
      }
      if (tile.fetches_panel) {
        Prefetch<3, kLayout.part_bytes() + kLayout.head_bytes / kParts>(
            part + kAheadBytes);
      }
      PartRows<kRows> rows(tile, row_layout, index);
      AddPart<kType, kRows>(head, part, num_columns, rows, outputs);
      part += kLayout.part_bytes();
    }
    head += kLayout.bytes();
  }
  outputs.Store(tile);
}

template <WeightType kType>
void MultiplyAnyRows(Tile tile) {
  if constexpr (kFewSizes) {
    for (; tile.num_rows > 2; tile.num_rows -= 2) {
      MultiplyRows<kType, 2>(tile);
      tile.rows += 2 * tile.row_stride;
      tile.out += 2 * tile.out_stride;
    }
  }
  switch (tile.num_rows) {
    case 1:
      return MultiplyRows<kType, 1>(tile);
    case 2:
      return MultiplyRows<kType, 2>(tile);
    default:
      break;
  }
  if constexpr (!kFewSizes) {
    switch (tile.num_rows) {
      case 3:
        return MultiplyRows<kType, 3>(tile);
      case 4:
        return MultiplyRows<kType, 4>(tile);
      case 5:
        return MultiplyRows<kType, 5>(tile);
      default:
        return MultiplyRows<kType, kTileRows>(tile);
    }
  }
}

}  // namespace
}  // namespace avx2

void MultiplyAvx2(const Tile& tile) {
  switch (tile.type) {
    case WeightType::kQ8_0:
      return avx2::MultiplyAnyRows<WeightType::kQ8_0>(tile);
    case WeightType::kQ4_0:
      return avx2::MultiplyAnyRows<WeightType::kQ4_0>(tile);
    case WeightType::kQ4_1:
      return avx2::MultiplyAnyRows<WeightType::kQ4_1>(tile);
    case WeightType::kQ4_K:
      return avx2::MultiplyAnyRows<WeightType::kQ4_K>(tile);
    case WeightType::kQ6_K:
      return avx2::MultiplyAnyRows<WeightType::kQ6_K>(tile);
    case WeightType::kBf16:
    case WeightType::kF32:
      return;
  }
}

}  // namespace farkv::matmul

#else  // No such instructions: HasAvx2() is false and nothing calls this.

namespace farkv::matmul {
void MultiplyAvx2(const Tile&) {}
}  // namespace farkv::matmul

#endif
