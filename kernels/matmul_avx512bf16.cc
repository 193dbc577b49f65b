// bf16 products by the AVX-512 BF16 dot product: each step takes two elements
// of K for 16 outputs. 6 rows x 64 columns hold 24 of the 32 registers, so a
// step is 4 weight loads and 6 broadcasts for 24 products. The panel that is
// being read is left to the hardware prefetcher: front to back from DRAM, every
// software prefetch tried (1 to 16 KiB ahead, any level) was as fast or slower.
#include "kernels/matmul_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

// The functions carry the instruction set themselves: flags for the whole file
// would leak it into inline functions that other files share.
#define FARKV_AVX512BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace farkv::matmul {
namespace {

constexpr size_t kVectors = kPanelColumns / 16;
constexpr size_t kStepBytes = kPanelColumns * 2 * sizeof(uint16_t);

FARKV_AVX512BF16 inline __m512bh LoadWeights(const std::byte* from) {
  return (__m512bh)_mm512_loadu_si512(from);
}

FARKV_AVX512BF16 inline void StoreRow(const __m512* sums, int32_t num_columns,
                                      float* out) {
#pragma GCC unroll 4
  for (size_t c = 0; c < kVectors; ++c) {
    const int32_t left = num_columns - 16 * static_cast<int32_t>(c);
    if (left <= 0) break;
    const auto mask =
        static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    _mm512_mask_storeu_ps(out + 16 * c, mask, sums[c]);
  }
}

template <size_t kRows, bool kFetchNext>
FARKV_AVX512BF16 void MultiplyRows(const Tile& tile) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t c = 0; c < kVectors; ++c) sums[r][c] = _mm512_setzero_ps();
  }
  const std::byte* step = tile.panel;
  const std::byte* next = tile.prefetch;
  for (int32_t k = 0; k < tile.depth; ++k, step += kStepBytes) {
    if constexpr (kFetchNext) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
      next += 64;
    }
    __m512bh weights[kVectors];
    for (size_t c = 0; c < kVectors; ++c) {
      weights[c] = LoadWeights(step + 64 * c);
    }
    for (size_t r = 0; r < kRows; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair,
                       tile.rows + r * tile.row_stride +
                           static_cast<size_t>(k) * sizeof(pair),
                       sizeof(pair));
      const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
      for (size_t c = 0; c < kVectors; ++c) {
        sums[r][c] = _mm512_dpbf16_ps(sums[r][c], x, weights[c]);
      }
    }
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    StoreRow(sums[r], tile.num_columns,
             tile.out + static_cast<int64_t>(r) * tile.out_stride);
  }
}

template <bool kFetchNext>
void MultiplyAnyRows(const Tile& tile) {
  switch (tile.num_rows) {
    case 1:
      return MultiplyRows<1, kFetchNext>(tile);
    case 2:
      return MultiplyRows<2, kFetchNext>(tile);
    case 3:
      return MultiplyRows<3, kFetchNext>(tile);
    case 4:
      return MultiplyRows<4, kFetchNext>(tile);
    case 5:
      return MultiplyRows<5, kFetchNext>(tile);
    default:
      return MultiplyRows<kTileRows, kFetchNext>(tile);
  }
}

}  // namespace

void MultiplyAvx512Bf16(const Tile& tile) {
  return tile.prefetch != nullptr ? MultiplyAnyRows<true>(tile)
                                  : MultiplyAnyRows<false>(tile);
}

FARKV_AVX512BF16 void RoundRowAvx512Bf16(const float* in, int32_t count,
                                         uint16_t* out) {
  for (int32_t i = 0; i < count; i += 16) {
    const int32_t left = count - i;
    const auto mask =
        static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    const __m512 values = _mm512_maskz_loadu_ps(mask, in + i);
    _mm256_mask_storeu_epi16(out + i, mask,
                             (__m256i)_mm512_cvtneps_pbh(values));
  }
}

}  // namespace farkv::matmul

#else  // No such instructions: HasAvx512Bf16() is false and nothing calls this.

namespace farkv::matmul {
void MultiplyAvx512Bf16(const Tile&) {}
void RoundRowAvx512Bf16(const float*, int32_t, uint16_t*) {}
}  // namespace farkv::matmul

#endif
