// The leaf for bf16 rows with AVX512_BF16. Logits by vdpbf16ps over pairs of
// elements, four rows by four queries at a time, so that one register holds
// [row][query]; weights and values in fp32.
//
// Written with intrinsics and per-function targets because Highway has no
// bf16 dot product; nothing here may run before HasAvx512Bf16() said yes. One
// file, so that all of a leaf can be inlined into it.
#include "kernels/attention_leaf.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// gcc 12 warns of its own headers' deliberately undefined pass-through values.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstring>
#include <limits>

#include "common/attention_tree/attention_exp.h"
#include "common/base/bf16.h"

#define FARKV_AVX512BF16 \
  __attribute__((        \
      target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,avx2")))
#define FARKV_AVX512BF16_INLINE FARKV_AVX512BF16 __attribute__((always_inline))

namespace farkv {
namespace {

constexpr int kQueries = kLeafQueries;
constexpr int kPairs = 32;    // bf16 elements per register
constexpr int kColumns = 64;  // values columns per pass
constexpr int kLine = 64;     // bytes of a cache line
constexpr size_t kGroupBytes = kQueries * sizeof(float);
constexpr float kDead = -std::numeric_limits<float>::infinity();

// Of one group of four queries. Both arrays are [slot][query]; `weights` is
// compact: entry i belongs to live row i.
struct Workspace {
  alignas(64) float logits[kPageTokens * kQueries];
  alignas(64) float weights[kPageTokens * kQueries];
};

using Group = const std::byte* [kQueries];

FARKV_AVX512BF16_INLINE inline __m512i LoadElements(const std::byte* from,
                                                    int left) {
  if (left >= kPairs) return _mm512_loadu_si512(from);
  return _mm512_maskz_loadu_epi16(0xffff, from);
}

FARKV_AVX512BF16_INLINE inline __m512 Dot(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// Prefetches `lines` cache lines into the second level: from there they come
// in time, and the first level is not swept.
FARKV_AVX512BF16_INLINE inline void Prefetch(const std::byte* at, int lines) {
  for (int i = 0; i < lines; ++i) __builtin_prefetch(at + i * kLine, 0, 2);
}

// Four sums of one row to [block][query]: the first step of the reduction.
FARKV_AVX512BF16_INLINE inline __m512 Interleave(__m512 a, __m512 b, __m512 c,
                                                 __m512 d) {
  const __m512 ab =
      _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd =
      _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512d ab_pairs = _mm512_castps_pd(ab);
  const __m512d cd_pairs = _mm512_castps_pd(cd);
  return _mm512_add_ps(
      _mm512_castpd_ps(_mm512_unpacklo_pd(ab_pairs, cd_pairs)),
      _mm512_castpd_ps(_mm512_unpackhi_pd(ab_pairs, cd_pairs)));
}

// [row][query] from four registers of [block][query].
FARKV_AVX512BF16_INLINE inline __m512 Rows(const __m512 (&r)[4]) {
  const __m512 r01 = _mm512_add_ps(_mm512_shuffle_f32x4(r[0], r[1], 0x44),
                                   _mm512_shuffle_f32x4(r[0], r[1], 0xee));
  const __m512 r23 = _mm512_add_ps(_mm512_shuffle_f32x4(r[2], r[3], 0x44),
                                   _mm512_shuffle_f32x4(r[2], r[3], 0xee));
  return _mm512_add_ps(_mm512_shuffle_f32x4(r01, r23, 0x88),
                       _mm512_shuffle_f32x4(r01, r23, 0xdd));
}

// Logits of all live rows, compact. kChunks: registers per vector when known
// (queries then stay in registers), else 0.
template <int kChunks, bool kPrefetch>
FARKV_AVX512BF16 void Logits(const LeafCall& call, const Group& group,
                             float* logits) {
  const LeafRows& rows = *call.rows;
  const int chunks =
      kChunks > 0 ? kChunks : (call.head_dim + kPairs - 1) / kPairs;
  const int lines = (call.head_dim * 2 + kLine - 1) / kLine;
  const __m512 scale = _mm512_set1_ps(call.scale);
  constexpr int kHeld = kChunks > 0 ? kChunks : 1;
  __m512i held[kQueries][size_t{kHeld}];
  if constexpr (kChunks > 0) {
    for (int q = 0; q < kQueries; ++q) {
      for (int c = 0; c < kChunks; ++c) {
        held[q][c] = _mm512_loadu_si512(group[q] + c * kLine);
      }
    }
  }
  for (int i = 0; i < rows.count; i += 4) {
    __m512 reduced[4];
    for (int j = 0; j < 4; ++j) {
      const std::byte* key = rows.key(i + j);
      __m512 sum[kQueries] = {_mm512_setzero_ps(), _mm512_setzero_ps(),
                              _mm512_setzero_ps(), _mm512_setzero_ps()};
      for (int c = 0; c < chunks; ++c) {
        const int left = kChunks > 0 ? kPairs : call.head_dim - c * kPairs;
        const __m512i k = LoadElements(key + c * kLine, left);
        for (int q = 0; q < kQueries; ++q) {
          if constexpr (kChunks > 0) {
            sum[q] = Dot(sum[q], held[q][c], k);
          } else {
            sum[q] = Dot(sum[q], LoadElements(group[q] + c * kLine, left), k);
          }
        }
      }
      reduced[j] = Interleave(sum[0], sum[1], sum[2], sum[3]);
      if constexpr (kPrefetch) {
        Prefetch(call.ahead->key(i + j), lines);
        Prefetch(rows.value(i + j), lines);
      }
    }
    _mm512_store_ps(logits + i * kQueries, _mm512_mul_ps(Rows(reduced), scale));
  }
}

// Moves compact logits to their slots, dead slots -inf.
void Spread(const LeafRows& rows, float* logits) {
  float compact[kPageTokens * kQueries];
  std::memcpy(compact, logits, static_cast<size_t>(rows.count) * kGroupBytes);
  for (int i = 0; i < kPageTokens * kQueries; ++i) logits[i] = kDead;
  for (int i = 0; i < rows.count; ++i) {
    std::memcpy(logits + rows.slot[i] * kQueries, compact + i * kQueries,
                kGroupBytes);
  }
}

// exp of four registers with the operations of attention_exp.h, step by step
// for all four so that none waits for its own last result.
FARKV_AVX512BF16_INLINE inline void Exp(__m512 (&x)[4]) {
  using C = AttentionExpConstants;
  const __m512 round = _mm512_set1_ps(C::kRound);
  const __m512i bias = _mm512_set1_epi32(C::kRoundBits - C::kExponentBias);
  constexpr float kQ[] = {C::kQ3, C::kQ2, C::kQ1, C::kQ0};
  __m512 shifted[4], n[4], r[4], q[4];
  __mmask16 seen[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    seen[j] =
        _mm512_cmp_ps_mask(x[j], _mm512_set1_ps(C::kMinArgument), _CMP_NLT_UQ);
    shifted[j] =
        _mm512_add_ps(_mm512_mul_ps(x[j], _mm512_set1_ps(C::kLog2E)), round);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) n[j] = _mm512_sub_ps(shifted[j], round);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    r[j] =
        _mm512_sub_ps(x[j], _mm512_mul_ps(n[j], _mm512_set1_ps(C::kLn2High)));
    n[j] = _mm512_mul_ps(n[j], _mm512_set1_ps(C::kLn2Low));
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) r[j] = _mm512_sub_ps(r[j], n[j]);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) q[j] = _mm512_set1_ps(C::kQ4);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      q[j] = _mm512_add_ps(_mm512_mul_ps(q[j], r[j]), _mm512_set1_ps(kQ[k]));
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    q[j] = _mm512_mul_ps(q[j], _mm512_mul_ps(r[j], r[j]));
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) q[j] = _mm512_add_ps(q[j], r[j]);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i exponent =
        _mm512_sub_epi32(_mm512_castps_si512(shifted[j]), bias);
    const __m512 power = _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
    const __m512 y = _mm512_add_ps(q[j], _mm512_set1_ps(1.0f));
    x[j] = _mm512_maskz_mul_ps(seen[j], y, power);
  }
}

FARKV_AVX512BF16_INLINE inline __m512 MaxOfBlocks(__m512 x) {
  x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  return _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
}

FARKV_AVX512BF16_INLINE inline __m512 SumOfBlocks(__m512 x) {
  x = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  return _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
}

// Turns [slot][query] logits into weights in place; m and l per query.
FARKV_AVX512BF16 void Softmax(float* logits, float* m, float* l) {
  constexpr int kVectors = kPageTokens * kQueries / 16;
  __m512 top[4];
  for (int j = 0; j < 4; ++j) top[j] = _mm512_load_ps(logits + j * 16);
  for (int i = 4; i < kVectors; i += 4) {
    for (int j = 0; j < 4; ++j) {
      top[j] = _mm512_max_ps(top[j], _mm512_load_ps(logits + (i + j) * 16));
    }
  }
  const __m512 max = MaxOfBlocks(_mm512_max_ps(_mm512_max_ps(top[0], top[1]),
                                               _mm512_max_ps(top[2], top[3])));
  __m512 sum[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps(), _mm512_setzero_ps()};
  for (int i = 0; i < kVectors; i += 4) {
    __m512 p[4];
    for (int j = 0; j < 4; ++j) {
      p[j] = _mm512_sub_ps(_mm512_load_ps(logits + (i + j) * 16), max);
    }
    Exp(p);
    for (int j = 0; j < 4; ++j) {
      _mm512_store_ps(logits + (i + j) * 16, p[j]);
      sum[j] = _mm512_add_ps(sum[j], p[j]);
    }
  }
  const __m512 total = SumOfBlocks(_mm512_add_ps(
      _mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
  _mm_storeu_ps(m, _mm512_castps512_ps128(max));
  _mm_storeu_ps(l, _mm512_castps512_ps128(total));
}

// Copies [slot][query] weights to one [64] array per query.
FARKV_AVX512BF16 void StoreWeights(const float* weights,
                                   const LeafQuery* queries, int size) {
  const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9,
                                          13, 17, 21, 25, 29);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(2));
  for (int s = 0; s < kPageTokens; s += 16) {
    const float* at = weights + s * kQueries;
    const __m512 a = _mm512_load_ps(at);
    const __m512 b = _mm512_load_ps(at + 16);
    const __m512 c = _mm512_load_ps(at + 32);
    const __m512 d = _mm512_load_ps(at + 48);
    const __m512 ab01 = _mm512_permutex2var_ps(a, first, b);
    const __m512 cd01 = _mm512_permutex2var_ps(c, first, d);
    const __m512 ab23 = _mm512_permutex2var_ps(a, second, b);
    const __m512 cd23 = _mm512_permutex2var_ps(c, second, d);
    const __m512 of_query[kQueries] = {_mm512_shuffle_f32x4(ab01, cd01, 0x44),
                                       _mm512_shuffle_f32x4(ab01, cd01, 0xee),
                                       _mm512_shuffle_f32x4(ab23, cd23, 0x44),
                                       _mm512_shuffle_f32x4(ab23, cd23, 0xee)};
    for (int q = 0; q < size; ++q) {
      _mm512_storeu_ps(queries[q].weights + s, of_query[q]);
    }
  }
}

// Puts even and odd columns of 32 in order and stores the first `count`.
FARKV_AVX512BF16_INLINE inline void StoreColumns(__m512 even, __m512 odd,
                                                 int count, float* out) {
  const __m512i low =
      _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(out, _mm512_permutex2var_ps(even, low, odd));
  if (count > 16) {
    _mm512_storeu_ps(out + 16, _mm512_permutex2var_ps(even, high, odd));
  }
}

// O of kSize queries for kRegisters * 32 columns from `column` on; with
// kRegisters == 1 the last 16 of them may be missing.
template <int kSize, int kRegisters, bool kPrefetch>
FARKV_AVX512BF16 void Values(const LeafCall& call, const LeafQuery* queries,
                             const float* weights, int column) {
  const LeafRows& rows = *call.rows;
  const int left = call.head_dim - column;
  const ptrdiff_t offset = static_cast<ptrdiff_t>(column) * 2;
  const __m512i high_half = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  __m512 even[size_t{kSize}][size_t{kRegisters}];
  __m512 odd[size_t{kSize}][size_t{kRegisters}];
  for (int q = 0; q < kSize; ++q) {
    for (int v = 0; v < kRegisters; ++v) {
      even[q][v] = _mm512_setzero_ps();
      odd[q][v] = _mm512_setzero_ps();
    }
  }
  for (int i = 0; i < rows.count; ++i) {
    const std::byte* value = rows.value(i) + offset;
    __m512 p[size_t{kSize}];
    for (int q = 0; q < kSize; ++q) {
      p[q] = _mm512_set1_ps(weights[i * kQueries + q]);
    }
    for (int v = 0; v < kRegisters; ++v) {
      const __m512i pairs =
          LoadElements(value + v * kLine, kRegisters > 1 ? kPairs : left);
      const __m512 e = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
      const __m512 o = _mm512_castsi512_ps(_mm512_and_si512(pairs, high_half));
      for (int q = 0; q < kSize; ++q) {
        even[q][v] = _mm512_fmadd_ps(p[q], e, even[q][v]);
        odd[q][v] = _mm512_fmadd_ps(p[q], o, odd[q][v]);
      }
    }
    if constexpr (kPrefetch) {
      Prefetch(call.ahead->value(i) + offset, kRegisters);
      Prefetch(call.next->key(i) + offset, kRegisters);
    }
  }
  for (int q = 0; q < kSize; ++q) {
    for (int v = 0; v < kRegisters; ++v) {
      StoreColumns(even[q][v], odd[q][v], left - v * kPairs,
                   queries[q].out + column + v * kPairs);
    }
  }
}

template <int kSize, bool kPrefetch>
FARKV_AVX512BF16 void AllValues(const LeafCall& call, const LeafQuery* queries,
                                const float* weights) {
  int column = 0;
  for (; column + kColumns <= call.head_dim; column += kColumns) {
    Values<kSize, 2, kPrefetch>(call, queries, weights, column);
  }
  for (; column < call.head_dim; column += kPairs) {
    Values<kSize, 1, kPrefetch>(call, queries, weights, column);
  }
}

template <bool kPrefetch>
FARKV_AVX512BF16 void LogitsOfShape(const LeafCall& call, const Group& group,
                                    float* logits) {
  switch (call.head_dim) {
    case 64:
      return Logits<2, kPrefetch>(call, group, logits);
    case 128:
      return Logits<4, kPrefetch>(call, group, logits);
    default:
      return Logits<0, kPrefetch>(call, group, logits);
  }
}

template <bool kPrefetch>
FARKV_AVX512BF16 void ValuesOfGroup(const LeafCall& call,
                                    const LeafQuery* queries, int size,
                                    const float* weights) {
  switch (size) {
    case 1:
      return AllValues<1, kPrefetch>(call, queries, weights);
    case 2:
      return AllValues<2, kPrefetch>(call, queries, weights);
    case 3:
      return AllValues<3, kPrefetch>(call, queries, weights);
    default:
      return AllValues<4, kPrefetch>(call, queries, weights);
  }
}

template <bool kPrefetch>
FARKV_AVX512BF16 void GroupLeaf(const LeafCall& call, const LeafQuery* queries,
                                int size, Workspace& work) {
  const LeafRows& rows = *call.rows;
  // A group of fewer than four repeats its first query; nobody reads that.
  const std::byte* group[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    group[q] = static_cast<const std::byte*>(queries[q < size ? q : 0].query);
  }
  LogitsOfShape<kPrefetch>(call, group, work.logits);
  if (rows.count < kPageTokens) Spread(rows, work.logits);
  float m[kQueries];
  float l[kQueries];
  Softmax(work.logits, m, l);
  for (int q = 0; q < size; ++q) {
    *queries[q].m = m[q];
    *queries[q].l = l[q];
  }
  if (queries[0].weights != nullptr) {
    StoreWeights(work.logits, queries, size);
  }
  const float* weights = work.logits;
  if (rows.count < kPageTokens) {
    for (int i = 0; i < rows.count; ++i) {
      std::memcpy(work.weights + i * kQueries,
                  work.logits + rows.slot[i] * kQueries, kGroupBytes);
    }
    weights = work.weights;
  }
  ValuesOfGroup<kPrefetch>(call, queries, size, weights);
}

void PackQuery(const float* query, int count, void* packed) {
  auto* to = static_cast<uint16_t*>(packed);
  for (int i = 0; i < count; ++i) to[i] = FloatToBf16(query[i]);
}

FARKV_AVX512BF16 void Leaf(const LeafCall& call) {
  Workspace work;
  bool prefetch = call.next != nullptr;
  for (int q = 0; q < call.num_queries; q += kQueries) {
    const int rest = call.num_queries - q;
    const int size = rest < kQueries ? rest : kQueries;
    if (prefetch) {
      GroupLeaf<true>(call, call.queries + q, size, work);
    } else {
      GroupLeaf<false>(call, call.queries + q, size, work);
    }
    prefetch = false;
  }
}

}  // namespace

LeafKernel Avx512Bf16LeafKernel() {
  return {.query_element_bytes = sizeof(uint16_t),
          .pack_query = &PackQuery,
          .leaf = &Leaf};
}

}  // namespace farkv

#else

namespace farkv {

LeafKernel Avx512Bf16LeafKernel() { return {}; }

}  // namespace farkv

#endif  // defined(__x86_64__)
