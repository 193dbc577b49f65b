// The integer half of matmul_avx2.cc: the exact sums of one part, for kRows
// rows and 8 * kVectors columns. AVX2 multiplies unsigned by signed bytes and
// adds the products of two neighbours to an int16, which saturates (`maddubs`).
// Every type keeps below that, at activations within +-127:
//   4 bits  a pair is at most 3,810; the eight of a part are added as int16
//   kQ6_K   a pair is at most 16,002; two are added as int16
//   kQ8_0   the weight's magnitude times the activation with the weight's sign:
//           at most 32,512; none are added
#ifndef FARKV_KERNELS_MATMUL_AVX2_SUMS_H_
#define FARKV_KERNELS_MATMUL_AVX2_SUMS_H_

#include <immintrin.h>

#include "kernels/matmul_part_rows.h"

// The functions carry the instruction set themselves, as in
// matmul_avx512bf16.cc. Inlined always: the sums are arrays that must stay in
// registers.
#define FARKV_AVX2 __attribute__((target("avx2,f16c")))
#define FARKV_AVX2_INLINE FARKV_AVX2 __attribute__((always_inline)) inline

namespace farkv::matmul::avx2 {

constexpr size_t kLanes = 8;

template <size_t kRows, size_t kVectors>
using Integers = __m256i[kRows][kVectors];

FARKV_AVX2_INLINE __m256i LoadVector(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

FARKV_AVX2_INLINE __m128i LoadEightBytes(const std::byte* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}

// The compiler takes `value` for a new one. Otherwise it orders integer
// additions anew and keeps all their terms, or loads the activations once for
// all columns: far more than 16 registers hold, and the rest goes over the
// stack.
FARKV_AVX2_INLINE void Hide(__m256i& value) { asm("" : "+x"(value)); }
FARKV_AVX2_INLINE void Hide(const std::byte*& value) { asm("" : "+r"(value)); }

// Four activations of K for all lanes.
FARKV_AVX2_INLINE __m256i Broadcast(const std::byte* from) {
  int32_t four;
  __builtin_memcpy(&four, from, sizeof(four));
  return _mm256_set1_epi32(four);
}

// Step kStep of a part for 8 columns, whose bytes of step 0 `quants` points to;
// unsigned.
template <WeightType kType, size_t kStep>
FARKV_AVX2_INLINE __m256i LoadStep(const std::byte* quants) {
  const __m256i bytes = LoadVector(quants + LowBytes(kType, kStep));
  if constexpr (kType == WeightType::kQ8_0) return bytes;
  __m256i low = bytes;
  if constexpr (kStep >= 4) low = _mm256_srli_epi16(low, 4);
  low = _mm256_and_si256(low, _mm256_set1_epi8(0x0f));
  if constexpr (kType != WeightType::kQ6_K) return low;
  // Two bits to bits 4 and 5 of each byte.
  constexpr int kShift = 4 - static_cast<int>(kStep / 2 * 2);
  __m256i high = LoadVector(quants + HighBytes(kStep));
  if constexpr (kShift > 0) high = _mm256_slli_epi16(high, kShift);
  if constexpr (kShift < 0) high = _mm256_srli_epi16(high, -kShift);
  high = _mm256_and_si256(high, _mm256_set1_epi8(0x30));
  return _mm256_or_si256(low, high);
}

template <size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void Clear(Integers<kRows, kVectors>& sums) {
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kVectors; ++c) sums[r][c] = _mm256_setzero_si256();
  }
}

// Adds a step's products to sums of int16.
template <WeightType kType, size_t kStep, size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void AddPairs(const std::byte* quants,
                                const PartRows<kRows>& rows,
                                Integers<kRows, kVectors>& pairs) {
  __m256i weights[kVectors];
#pragma GCC unroll 8
  for (size_t c = 0; c < kVectors; ++c) {
    weights[c] = LoadStep<kType, kStep>(quants + 4 * kLanes * c);
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    const __m256i x = Broadcast(rows.quants + r * rows.stride + 4 * kStep);
#pragma GCC unroll 8
    for (size_t c = 0; c < kVectors; ++c) {
      pairs[r][c] =
          _mm256_add_epi16(pairs[r][c], _mm256_maddubs_epi16(weights[c], x));
      Hide(pairs[r][c]);
    }
  }
}

// The sums of a part of 4 bits. Steps that share bytes follow each other.
template <WeightType kType, size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void SumNibbles(const std::byte* quants,
                                  const PartRows<kRows>& rows,
                                  Integers<kRows, kVectors>& sums) {
  Clear<kRows, kVectors>(sums);
  AddPairs<kType, 0, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 4, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 1, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 5, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 2, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 6, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 3, kRows, kVectors>(quants, rows, sums);
  AddPairs<kType, 7, kRows, kVectors>(quants, rows, sums);
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    const __m256i offset = _mm256_set1_epi32(-QuantOffset(kType) * rows.sum(r));
#pragma GCC unroll 8
    for (size_t c = 0; c < kVectors; ++c) {
      sums[r][c] = _mm256_madd_epi16(sums[r][c], _mm256_set1_epi16(1));
      if constexpr (QuantOffset(kType) != 0) {
        sums[r][c] = _mm256_add_epi32(sums[r][c], offset);
      }
    }
  }
}

// Adds a step of kQ8_0 to sums of int32.
template <size_t kStep, size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void AddBytes(const std::byte* quants,
                                const PartRows<kRows>& rows,
                                Integers<kRows, kVectors>& sums) {
  __m256i weights[kVectors];
  __m256i magnitudes[kVectors];
#pragma GCC unroll 8
  for (size_t c = 0; c < kVectors; ++c) {
    weights[c] = _mm256_xor_si256(
        LoadStep<WeightType::kQ8_0, kStep>(quants + 4 * kLanes * c),
        _mm256_set1_epi8(-128));
    magnitudes[c] = _mm256_abs_epi8(weights[c]);
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    const __m256i x = Broadcast(rows.quants + r * rows.stride + 4 * kStep);
#pragma GCC unroll 8
    for (size_t c = 0; c < kVectors; ++c) {
      const __m256i pairs =
          _mm256_maddubs_epi16(magnitudes[c], _mm256_sign_epi8(x, weights[c]));
      sums[r][c] = _mm256_add_epi32(
          sums[r][c], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
      Hide(sums[r][c]);
    }
  }
}

template <size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void SumBytes(const std::byte* quants,
                                const PartRows<kRows>& rows,
                                Integers<kRows, kVectors>& sums) {
  Clear<kRows, kVectors>(sums);
  AddBytes<0, kRows, kVectors>(quants, rows, sums);
  AddBytes<1, kRows, kVectors>(quants, rows, sums);
  AddBytes<2, kRows, kVectors>(quants, rows, sums);
  AddBytes<3, kRows, kVectors>(quants, rows, sums);
  AddBytes<4, kRows, kVectors>(quants, rows, sums);
  AddBytes<5, kRows, kVectors>(quants, rows, sums);
  AddBytes<6, kRows, kVectors>(quants, rows, sums);
  AddBytes<7, kRows, kVectors>(quants, rows, sums);
}

// A byte of scale for each column as two equal int16.
FARKV_AVX2_INLINE __m256i ScalePairs(const std::byte* scales) {
  const __m256i low_words = _mm256_set1_epi32(0x01000100);
  const __m256i within =
      _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                        0x08080808, 0x0c0c0c0c);
  return _mm256_shuffle_epi8(_mm256_cvtepi8_epi32(LoadEightBytes(scales)),
                             _mm256_add_epi8(low_words, within));
}

// Two steps of one half of kQ6_K, times the half's scale, added to int32 sums.
template <size_t kStep, size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void AddScaled(const std::byte* quants,
                                 const PartRows<kRows>& rows,
                                 const __m256i (&scales)[kVectors],
                                 Integers<kRows, kVectors>& sums) {
  Integers<kRows, kVectors> pairs;
  Clear<kRows, kVectors>(pairs);
  AddPairs<WeightType::kQ6_K, kStep, kRows, kVectors>(quants, rows, pairs);
  AddPairs<WeightType::kQ6_K, kStep + 1, kRows, kVectors>(quants, rows, pairs);
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kVectors; ++c) {
      sums[r][c] = _mm256_add_epi32(sums[r][c],
                                    _mm256_madd_epi16(pairs[r][c], scales[c]));
      Hide(sums[r][c]);
    }
  }
}

// Takes the offset of 32 off both halves: 32 * scale * sum of the activations'
// integers, which are at most 16 * 127.
template <size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void SubtractOffset(const PartRows<kRows>& rows,
                                      const __m256i (&low)[kVectors],
                                      const __m256i (&high)[kVectors],
                                      Integers<kRows, kVectors>& sums) {
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    const auto halves = static_cast<uint32_t>(rows.half_sums[r][0] & 0xffff) |
                        static_cast<uint32_t>(rows.half_sums[r][1]) << 16;
    const __m256i x = _mm256_set1_epi32(static_cast<int32_t>(halves));
#pragma GCC unroll 8
    for (size_t c = 0; c < kVectors; ++c) {
      const __m256i scales = _mm256_blend_epi16(low[c], high[c], 0xaa);
      sums[r][c] = _mm256_sub_epi32(
          sums[r][c], _mm256_slli_epi32(_mm256_madd_epi16(scales, x), 5));
    }
  }
}

// The sums of a kQ6_K part's halves times their scales, below 2^25 on the way
// and 2^24 at the end.
template <size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void SumSixBits(const std::byte* scales,
                                  const std::byte* quants,
                                  const PartRows<kRows>& rows,
                                  Integers<kRows, kVectors>& sums) {
  __m256i low[kVectors];
  __m256i high[kVectors];
#pragma GCC unroll 8
  for (size_t c = 0; c < kVectors; ++c) {
    low[c] = ScalePairs(scales + kLanes * c);
    high[c] = ScalePairs(scales + kPanelColumns + kLanes * c);
  }
  Clear<kRows, kVectors>(sums);
  AddScaled<0, kRows, kVectors>(quants, rows, low, sums);
  AddScaled<2, kRows, kVectors>(quants, rows, low, sums);
  AddScaled<4, kRows, kVectors>(quants, rows, high, sums);
  AddScaled<6, kRows, kVectors>(quants, rows, high, sums);
  SubtractOffset<kRows, kVectors>(rows, low, high, sums);
}

template <WeightType kType, size_t kRows, size_t kVectors>
FARKV_AVX2_INLINE void SumPart(const std::byte* part, size_t column,
                               const PartRows<kRows>& rows,
                               Integers<kRows, kVectors>& sums) {
  const std::byte* quants =
      part + LayoutOf(kType).part_scale_bytes + 4 * column;
  if constexpr (kType == WeightType::kQ8_0) {
    SumBytes<kRows, kVectors>(quants, rows, sums);
  } else if constexpr (kType == WeightType::kQ6_K) {
    SumSixBits<kRows, kVectors>(part + column, quants, rows, sums);
  } else {
    SumNibbles<kType, kRows, kVectors>(quants, rows, sums);
  }
}

}  // namespace farkv::matmul::avx2

#endif  // FARKV_KERNELS_MATMUL_AVX2_SUMS_H_
