// Products with quantised weights by the AVX-512 VNNI dot product: each step
// multiplies four unsigned bytes of weights by four signed bytes of activations
// for 16 outputs, exactly. Quants are stored unsigned; their offset enters as
// the first term of a part's sum, -offset * sum of the activations' integers.
// The fp32 part is that of matmul_quantized_hwy.cc, operation by operation.
//
// Registers: up to four rows take all 64 columns of a panel; more take 32 at a
// time and go over the panel twice, so that a step is 2 loads of weights and 6
// broadcasts for 12 dot products. 4 bits are unpacked once for all rows.
#include "kernels/matmul_kernels.h"
#include "kernels/matmul_part_rows.h"
#include "kernels/quantized_groups.h"

#if defined(__x86_64__)
#include <immintrin.h>

// As in matmul_avx512bf16.cc.
#define FARKV_AVX512VNNI \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

namespace farkv::matmul {
namespace {

constexpr size_t kLanes = 16;

template <size_t kRows, size_t kVectors>
using Integers = __m512i[kRows][kVectors];

FARKV_AVX512VNNI inline __m512i LoadLine(const std::byte* from) {
  return _mm512_loadu_si512(from);
}

// With a mask: gcc 12 warns about the undefined lanes that its own unmasked
// conversions name (GCC bug 105593).
constexpr __mmask16 kAllLanes = 0xffff;

FARKV_AVX512VNNI inline __m512 ToFloats(__m512i integers) {
  return _mm512_maskz_cvtepi32_ps(kAllLanes, integers);
}

FARKV_AVX512VNNI inline __m512 LoadHalves(const std::byte* from) {
  return _mm512_maskz_cvtph_ps(
      kAllLanes, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

FARKV_AVX512VNNI inline __m128i LoadBytes(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

FARKV_AVX512VNNI inline __m512 SignedBytes(const std::byte* from) {
  return ToFloats(_mm512_maskz_cvtepi8_epi32(kAllLanes, LoadBytes(from)));
}

FARKV_AVX512VNNI inline __m512 UnsignedBytes(const std::byte* from) {
  return ToFloats(_mm512_maskz_cvtepu8_epi32(kAllLanes, LoadBytes(from)));
}

// Four activations of K for all lanes.
FARKV_AVX512VNNI inline __m512i Broadcast(const std::byte* from) {
  int32_t four;
  __builtin_memcpy(&four, from, sizeof(four));
  return _mm512_set1_epi32(four);
}

// Step kStep of a part for 16 columns, whose bytes of step 0 `quants` points
// to. Steps that share bytes are asked for one after the other, and the
// compiler loads those once.
template <WeightType kType, size_t kStep>
FARKV_AVX512VNNI inline __m512i LoadStep(const std::byte* quants) {
  const __m512i bytes = LoadLine(quants + LowBytes(kType, kStep));
  if constexpr (kType == WeightType::kQ8_0) return bytes;
  __m512i low = kStep < 4 ? bytes : _mm512_srli_epi16(bytes, 4);
  low = _mm512_and_si512(low, _mm512_set1_epi8(0x0f));
  if constexpr (kType != WeightType::kQ6_K) return low;
  // Two bits to bits 4 and 5 of each byte.
  constexpr int kShift = 4 - static_cast<int>(kStep / 2 * 2);
  __m512i high = LoadLine(quants + HighBytes(kStep));
  if constexpr (kShift > 0) high = _mm512_slli_epi16(high, kShift);
  if constexpr (kShift < 0) high = _mm512_srli_epi16(high, -kShift);
  high = _mm512_and_si512(high, _mm512_set1_epi8(0x30));
  return _mm512_or_si512(low, high);
}

template <WeightType kType, size_t kStep, size_t kRows, size_t kVectors>
FARKV_AVX512VNNI inline void AddStep(const std::byte* quants,
                                     const PartRows<kRows>& rows,
                                     Integers<kRows, kVectors>& sums) {
  __m512i weights[kVectors];
#pragma GCC unroll 4
  for (size_t c = 0; c < kVectors; ++c) {
    weights[c] = LoadStep<kType, kStep>(quants + 64 * c);
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    const __m512i x = Broadcast(rows.quants + r * rows.stride + 4 * kStep);
#pragma GCC unroll 4
    for (size_t c = 0; c < kVectors; ++c) {
      sums[r][c] = _mm512_dpbusd_epi32(sums[r][c], weights[c], x);
    }
  }
}

// The first term of a row's sums: what the quants' offset adds to them.
template <WeightType kType, size_t kRows, size_t kVectors>
FARKV_AVX512VNNI inline void Start(const PartRows<kRows>& rows, size_t first,
                                   size_t end,
                                   Integers<kRows, kVectors>& sums) {
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    int32_t sum = rows.half_sums[r][first];
    if (first + 1 < end) sum += rows.half_sums[r][first + 1];
    const __m512i offset = _mm512_set1_epi32(-QuantOffset(kType) * sum);
#pragma GCC unroll 4
    for (size_t c = 0; c < kVectors; ++c) sums[r][c] = offset;
  }
}

// The integer sums of a part as fp32; kQ6_K: of its halves times their scales.
template <WeightType kType, size_t kRows, size_t kVectors>
struct PartSums {
  __m512 sums[kRows][kVectors];

  FARKV_AVX512VNNI inline void Compute(const std::byte* part, size_t column,
                                       const PartRows<kRows>& rows) {
    const std::byte* quants =
        part + LayoutOf(kType).part_scale_bytes + 4 * column;
    if constexpr (kType == WeightType::kQ6_K) {
      Integers<kRows, kVectors> low, high;
      Start<kType, kRows, kVectors>(rows, 0, 1, low);
      Start<kType, kRows, kVectors>(rows, 1, 2, high);
      AddSteps<kType, 0>(quants, rows, low, high);
      AddSteps<kType, 2>(quants, rows, low, high);
      AddSteps<kType, 1>(quants, rows, low, high);
      AddSteps<kType, 3>(quants, rows, low, high);
      ScaleHalves(part + column, low, high);
    } else {
      Integers<kRows, kVectors> all;
      Start<kType, kRows, kVectors>(rows, 0, 2, all);
      if constexpr (kType == WeightType::kQ8_0) {
        AddStep<kType, 0, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 1, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 2, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 3, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 4, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 5, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 6, kRows, kVectors>(quants, rows, all);
        AddStep<kType, 7, kRows, kVectors>(quants, rows, all);
      } else {
        AddSteps<kType, 0>(quants, rows, all, all);
        AddSteps<kType, 1>(quants, rows, all, all);
        AddSteps<kType, 2>(quants, rows, all, all);
        AddSteps<kType, 3>(quants, rows, all, all);
      }
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (size_t c = 0; c < kVectors; ++c) sums[r][c] = ToFloats(all[r][c]);
      }
    }
  }

  // Two steps that share their low bits' bytes.
  template <WeightType, size_t kStep>
  FARKV_AVX512VNNI inline void AddSteps(const std::byte* quants,
                                        const PartRows<kRows>& rows,
                                        Integers<kRows, kVectors>& low,
                                        Integers<kRows, kVectors>& high) {
    AddStep<kType, kStep, kRows, kVectors>(quants, rows, low);
    AddStep<kType, kStep + 4, kRows, kVectors>(quants, rows, high);
  }

  FARKV_AVX512VNNI inline void ScaleHalves(
      const std::byte* scales, const Integers<kRows, kVectors>& low,
      const Integers<kRows, kVectors>& high) {
#pragma GCC unroll 4
    for (size_t c = 0; c < kVectors; ++c) {
      const __m512 low_scale = SignedBytes(scales + kLanes * c);
      const __m512 high_scale =
          SignedBytes(scales + kPanelColumns + kLanes * c);
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][c] =
            _mm512_fmadd_ps(ToFloats(high[r][c]), high_scale,
                            _mm512_mul_ps(ToFloats(low[r][c]), low_scale));
      }
    }
  }
};

// The scales d and minima m of a part.
template <WeightType kType, size_t kVectors>
struct Scales {
  static constexpr bool kHasMinimum =
      kType == WeightType::kQ4_1 || kType == WeightType::kQ4_K;
  __m512 scale[kVectors];
  __m512 minimum[kVectors];

  FARKV_AVX512VNNI inline void Load(const std::byte* head,
                                    const std::byte* part, size_t column) {
#pragma GCC unroll 4
    for (size_t c = 0; c < kVectors; ++c) {
      const size_t at = column + kLanes * c;
      scale[c] = LoadHalves(head + 2 * at);
      if constexpr (kHasMinimum) {
        minimum[c] = LoadHalves(head + 2 * (kPanelColumns + at));
      }
      if constexpr (kType == WeightType::kQ4_K) {
        scale[c] = _mm512_mul_ps(scale[c], SignedBytes(part + at));
        minimum[c] = _mm512_sub_ps(
            _mm512_setzero_ps(),
            _mm512_mul_ps(minimum[c],
                          UnsignedBytes(part + kPanelColumns + at)));
      }
    }
  }
};

template <size_t kRows, size_t kVectors>
struct Outputs {
  __m512 values[kRows][kVectors];

  FARKV_AVX512VNNI inline void Clear() {
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t c = 0; c < kVectors; ++c) values[r][c] = _mm512_setzero_ps();
    }
  }

  template <WeightType kType>
  FARKV_AVX512VNNI inline void Add(const PartSums<kType, kRows, kVectors>& part,
                                   const Scales<kType, kVectors>& scales,
                                   const PartRows<kRows>& rows) {
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_set1_ps(rows.scales[r]);
#pragma GCC unroll 4
      for (size_t c = 0; c < kVectors; ++c) {
        const __m512 product = _mm512_mul_ps(part.sums[r][c], scales.scale[c]);
        values[r][c] =
            _mm512_add_ps(values[r][c], _mm512_mul_ps(product, scale));
      }
      if constexpr (Scales<kType, kVectors>::kHasMinimum) {
        const __m512 sum =
            _mm512_set1_ps(rows.scales[r] * static_cast<float>(rows.sum(r)));
#pragma GCC unroll 4
        for (size_t c = 0; c < kVectors; ++c) {
          values[r][c] = _mm512_add_ps(values[r][c],
                                       _mm512_mul_ps(scales.minimum[c], sum));
        }
      }
    }
  }

  FARKV_AVX512VNNI inline void Store(const Tile& tile, size_t column) const {
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      float* out = tile.out + static_cast<int64_t>(r) * tile.out_stride;
#pragma GCC unroll 4
      for (size_t c = 0; c < kVectors; ++c) {
        const size_t at = column + kLanes * c;
        const int32_t left = tile.num_columns - static_cast<int32_t>(at);
        if (left <= 0) break;
        const auto mask =
            static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
        _mm512_mask_storeu_ps(out + at, mask, values[r][c]);
      }
    }
  }
};

// kVectors vectors of outputs for kRows rows, from `column` of the panel on.
template <WeightType kType, size_t kRows, size_t kVectors>
FARKV_AVX512VNNI inline void MultiplyColumns(const Tile& tile, size_t column) {
  constexpr QuantizedLayout kLayout = LayoutOf(kType);
  constexpr auto kParts = static_cast<size_t>(kLayout.num_parts);
  const QuantizedRowLayout row_layout(tile.depth * GroupElements(kType));
  Outputs<kRows, kVectors> outputs;
  outputs.Clear();
  const std::byte* head = tile.panel;
  const std::byte* next = column == 0 ? tile.prefetch : nullptr;
  const size_t num_parts = static_cast<size_t>(tile.depth) * kParts;
  for (size_t index = 0; index < num_parts;) {
    const std::byte* part = head + kLayout.head_bytes;
    for (size_t p = 0; p < kParts; ++p, ++index) {
      if (next != nullptr) {
        for (size_t line = 0; line < kLayout.part_bytes(); line += 4 * 64) {
          _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
          next += 64;
        }
      }
      const PartRows<kRows> rows(tile, row_layout, index);
      PartSums<kType, kRows, kVectors> sums;
      sums.Compute(part, column, rows);
      Scales<kType, kVectors> scales;
      scales.Load(head, part, column);
      outputs.template Add<kType>(sums, scales, rows);
      part += kLayout.part_bytes();
    }
    head += kLayout.bytes();
  }
  outputs.Store(tile, column);
}

template <WeightType kType, size_t kRows>
FARKV_AVX512VNNI void MultiplyRows(const Tile& tile) {
  constexpr size_t kVectors = kRows <= 4 ? 4 : 2;
  for (size_t column = 0; column < static_cast<size_t>(tile.num_columns);
       column += kVectors * kLanes) {
    MultiplyColumns<kType, kRows, kVectors>(tile, column);
  }
}

#if defined(FARKV_SANITIZED)

// All sizes take minutes to compile under a sanitizer.
template <WeightType kType>
void MultiplyAnyRows(Tile tile) {
  while (tile.num_rows > 0) {
    const int32_t rows = tile.num_rows == 1 ? 1 : 2;
    if (rows == 2) {
      MultiplyRows<kType, 2>(tile);
    } else {
      MultiplyRows<kType, 1>(tile);
    }
    tile.rows += static_cast<size_t>(rows) * tile.row_stride;
    tile.out += rows * tile.out_stride;
    tile.num_rows -= rows;
  }
}

#else

template <WeightType kType>
void MultiplyAnyRows(const Tile& tile) {
  if (tile.fetches_panel && tile.num_rows > 4) {
    // Going over a panel twice, in pieces of 128 bytes, is slow from memory.
    Tile first = tile;
    first.num_rows = 3;
    Tile second = tile;
    second.rows += 3 * tile.row_stride;
    second.out += 3 * tile.out_stride;
    second.num_rows -= 3;
    MultiplyAnyRows<kType>(first);
    return MultiplyAnyRows<kType>(second);
  }
  switch (tile.num_rows) {
    case 1:
      return MultiplyRows<kType, 1>(tile);
    case 2:
      return MultiplyRows<kType, 2>(tile);
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

#endif

}  // namespace

void MultiplyAvx512Vnni(const Tile& tile) {
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

}  // namespace farkv::matmul

#else  // No such instructions: HasAvx512Vnni() is false and nothing calls this.

namespace farkv::matmul {
void MultiplyAvx512Vnni(const Tile&) {}
}  // namespace farkv::matmul

#endif
