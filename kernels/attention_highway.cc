// The leaf on any Highway target, for f32 and bf16 rows (bf16 widened to
// fp32), and the score sums. The order of sums depends on the target's vector
// length, so targets differ in their last bits; scores from the same weights
// do not.
#include "kernels/attention_leaf.h"
#include "kernels/attention_scores.h"

// Scalable vectors run the fixed-width target, as all kernels do.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_highway.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After foreach_target.h, so that each target sees it anew.
#include "common/attention_tree/attention_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// head_dim and a page's 64 slots are multiples of 16 lanes.
using FloatTag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<FloatTag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
// Registers decide how many sums are held at once, never their order.
constexpr bool kManyRegisters = kLanes == 16;
constexpr int kRowsAtOnce = kManyRegisters ? 4 : 2;
constexpr int kVectorsAtOnce = kManyRegisters ? 4 : 2;

struct F32Rows {
  static constexpr int kBytes = 4;
  static HWY_INLINE Vector Load(const std::byte* at) {
    return hn::LoadU(FloatTag(), reinterpret_cast<const float*>(at));
  }
};

struct Bf16Rows {
  static constexpr int kBytes = 2;
  static HWY_INLINE Vector Load(const std::byte* at) {
    const hn::Rebind<uint16_t, FloatTag> half;
    const hn::Rebind<uint32_t, FloatTag> whole;
    const auto bits = hn::PromoteTo(
        whole, hn::LoadU(half, reinterpret_cast<const uint16_t*>(at)));
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(bits));
  }
};

// Asks for a whole vector to be brought near.
HWY_INLINE void Prefetch(const std::byte* at, int bytes) {
  for (int i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, 0, 2);
}

// Logits of rows i .. i + kRowsAtOnce - 1 for kSize queries.
template <class Rows, int kSize>
HWY_INLINE void RowLogits(const LeafCall& call, const LeafQuery* queries, int i,
                          float (*logits)[kPageTokens]) {
  const FloatTag d;
  const LeafRows& rows = *call.rows;
  Vector sum[kRowsAtOnce][size_t{kSize}];
  for (int j = 0; j < kRowsAtOnce; ++j) {
    for (int q = 0; q < kSize; ++q) sum[j][q] = hn::Zero(d);
  }
  for (int c = 0; c < call.head_dim; c += kLanes) {
    Vector key[kRowsAtOnce];
    for (int j = 0; j < kRowsAtOnce; ++j) {
      key[j] = Rows::Load(rows.key(i + j) + c * Rows::kBytes);
    }
    for (int q = 0; q < kSize; ++q) {
      const auto* query = static_cast<const float*>(queries[q].query);
      const Vector x = hn::LoadU(d, query + c);
      for (int j = 0; j < kRowsAtOnce; ++j) {
        sum[j][q] = hn::MulAdd(x, key[j], sum[j][q]);
      }
    }
  }
  for (int j = 0; j < kRowsAtOnce && i + j < rows.count; ++j) {
    for (int q = 0; q < kSize; ++q) {
      logits[q][rows.slot[i + j]] =
          hn::GetLane(hn::SumOfLanes(d, sum[j][q])) * call.scale;
    }
  }
}

// Turns 64 logits into weights in place.
HWY_INLINE void Softmax(float* logits, float* m, float* l) {
  const FloatTag d;
  Vector top = hn::Load(d, logits);
  for (int s = kLanes; s < kPageTokens; s += kLanes) {
    top = hn::Max(top, hn::Load(d, logits + s));
  }
  top = hn::MaxOfLanes(d, top);
  Vector sum = hn::Zero(d);
  for (int s = 0; s < kPageTokens; s += kLanes) {
    const Vector p = AttentionExp(d, hn::Sub(hn::Load(d, logits + s), top));
    hn::Store(p, d, logits + s);
    sum = hn::Add(sum, p);
  }
  *m = hn::GetLane(top);
  *l = hn::GetLane(hn::SumOfLanes(d, sum));
}

// O of kSize queries for kVectors vectors of columns from `column` on.
template <class Rows, int kSize, int kVectors>
HWY_INLINE void Values(const LeafCall& call, const LeafQuery* queries,
                       const float (*weights)[kPageTokens], int column) {
  const FloatTag d;
  const LeafRows& rows = *call.rows;
  Vector sum[size_t{kSize}][size_t{kVectors}];
  for (int q = 0; q < kSize; ++q) {
    for (int v = 0; v < kVectors; ++v) sum[q][v] = hn::Zero(d);
  }
  for (int i = 0; i < rows.count; ++i) {
    const std::byte* value = rows.value(i) + column * Rows::kBytes;
    Vector x[size_t{kVectors}];
    for (int v = 0; v < kVectors; ++v) {
      x[v] = Rows::Load(value + v * kLanes * Rows::kBytes);
    }
    for (int q = 0; q < kSize; ++q) {
      const Vector p = hn::Set(d, weights[q][rows.slot[i]]);
      for (int v = 0; v < kVectors; ++v) {
        sum[q][v] = hn::MulAdd(p, x[v], sum[q][v]);
      }
    }
    if (call.next != nullptr) {
      const ptrdiff_t offset = column * Rows::kBytes;
      Prefetch(call.ahead->value(i) + offset, kVectors * kLanes * Rows::kBytes);
      Prefetch(call.next->key(i) + offset, kVectors * kLanes * Rows::kBytes);
    }
  }
  for (int q = 0; q < kSize; ++q) {
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[q][v], d, queries[q].out + column + v * kLanes);
    }
  }
}

template <class Rows, int kSize>
HWY_NOINLINE void GroupLeaf(const LeafCall& call, const LeafQuery* queries) {
  HWY_ALIGN float logits[size_t{kSize}][kPageTokens];
  for (int q = 0; q < kSize; ++q) {
    for (float& logit : logits[q]) logit = -__builtin_inff();
  }
  const int bytes = call.head_dim * Rows::kBytes;
  for (int i = 0; i < call.rows->count; i += kRowsAtOnce) {
    RowLogits<Rows, kSize>(call, queries, i, logits);
    if (call.next == nullptr) continue;
    for (int j = i; j < i + kRowsAtOnce; ++j) {
      Prefetch(call.ahead->key(j), bytes);
      Prefetch(call.rows->value(j), bytes);
    }
  }
  for (int q = 0; q < kSize; ++q) {
    Softmax(logits[q], queries[q].m, queries[q].l);
    if (queries[q].weights != nullptr) {
      __builtin_memcpy(queries[q].weights, logits[q], sizeof(logits[q]));
    }
  }
  int column = 0;
  constexpr int kStep = kVectorsAtOnce * kLanes;
  for (; column + kStep <= call.head_dim; column += kStep) {
    Values<Rows, kSize, kVectorsAtOnce>(call, queries, logits, column);
  }
  for (; column < call.head_dim; column += kLanes) {
    Values<Rows, kSize, 1>(call, queries, logits, column);
  }
}

template <class Rows>
void Leaf(const LeafCall& call) {
  LeafCall part = call;
  for (int q = 0; q < call.num_queries; q += kLeafQueries) {
    const LeafQuery* queries = call.queries + q;
    switch (call.num_queries - q) {
      case 1:
        GroupLeaf<Rows, 1>(part, queries);
        break;
      case 2:
        GroupLeaf<Rows, 2>(part, queries);
        break;
      case 3:
        GroupLeaf<Rows, 3>(part, queries);
        break;
      default:
        GroupLeaf<Rows, 4>(part, queries);
    }
    part.next = nullptr;
  }
}

void LeafF32(const LeafCall& call) { Leaf<F32Rows>(call); }
void LeafBf16(const LeafCall& call) { Leaf<Bf16Rows>(call); }

// exp(m_leaf - m) / l of `count` heads, one vector's worth; 0 where the leaf
// is empty.
HWY_INLINE void Factors(const LeafScoreCall& call, int head, int count,
                        float* factors) {
  const FloatTag d;
  HWY_ALIGN float m_leaf[kLanes] = {};
  HWY_ALIGN float m[kLanes] = {};
  HWY_ALIGN float l[kLanes] = {};
  for (int i = 0; i < count; ++i) {
    m_leaf[i] = call.m_leaf[head + i];
    m[i] = call.m[head + i];
    l[i] = call.l[head + i];
  }
  const Vector leaf = hn::Load(d, m_leaf);
  const auto any = hn::Gt(leaf, hn::Set(d, -__builtin_inff()));
  const Vector scaled = AttentionExp(d, hn::Sub(leaf, hn::Load(d, m)));
  hn::Store(hn::IfThenElseZero(any, hn::Div(scaled, hn::Load(d, l))), d,
            factors);
}

// scores += round(sums * scale): adding 1.5 * 2^52 leaves the integer in the
// low mantissa bits.
HWY_INLINE void AddRounded(const float* sums, double scale, int64_t* scores) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> half;
  const hn::RebindToSigned<decltype(d)> whole;
  const auto factor = hn::Set(d, scale);
  const auto round = hn::Set(d, 0x1.8p+52);
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int s = 0; s < kPageTokens; s += lanes) {
    const auto x = hn::PromoteTo(d, hn::LoadU(half, sums + s));
    const auto shifted = hn::Add(hn::Mul(x, factor), round);
    const auto value =
        hn::Sub(hn::BitCast(whole, shifted), hn::BitCast(whole, round));
    hn::StoreU(hn::Add(hn::LoadU(whole, scores + s), value), whole, scores + s);
  }
}

void LeafScores(const LeafScoreCall& call, int64_t* scores) {
  const FloatTag d;
  HWY_ALIGN float sums[kPageTokens] = {};
  HWY_ALIGN float factors[kLanes];
  for (int head = 0; head < call.num_heads; head += kLanes) {
    const int rest = call.num_heads - head;
    const int count = rest < kLanes ? rest : kLanes;
    Factors(call, head, count, factors);
    for (int s = 0; s < kPageTokens; s += kLanes) {
      const float* weights = call.weights + head * kPageTokens + s;
      Vector sum = hn::Load(d, sums + s);
      for (int h = 0; h < count; ++h) {
        const Vector p = hn::LoadU(d, weights + h * kPageTokens);
        sum = hn::Add(sum, hn::Mul(p, hn::Set(d, factors[h])));
      }
      hn::Store(sum, d, sums + s);
    }
  }
  AddRounded(sums, call.scale, scores);
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "common/base/bf16.h"

namespace farkv {

HWY_EXPORT(LeafF32);
HWY_EXPORT(LeafBf16);
HWY_EXPORT(LeafScores);

namespace {

void CopyQuery(const float* query, int count, void* packed) {
  std::copy_n(query, count, static_cast<float*>(packed));
}

void RoundQuery(const float* query, int count, void* packed) {
  auto* to = static_cast<float*>(packed);
  for (int i = 0; i < count; ++i) to[i] = Bf16ToFloat(FloatToBf16(query[i]));
}

}  // namespace

LeafKernel HighwayLeafKernel(DType dtype) {
  if (dtype == DType::kF32) {
    return {.query_element_bytes = sizeof(float),
            .pack_query = &CopyQuery,
            .leaf = [](const LeafCall& call) {
              HWY_DYNAMIC_DISPATCH(LeafF32)(call);
            }};
  }
  return {.query_element_bytes = sizeof(float),
          .pack_query = &RoundQuery,
          .leaf = [](const LeafCall& call) {
            HWY_DYNAMIC_DISPATCH(LeafBf16)(call);
          }};
}

void AddPageScores(const LeafScoreCall& call, int64_t* scores) {
  HWY_DYNAMIC_DISPATCH(LeafScores)(call, scores);
}

}  // namespace farkv
#endif  // HWY_ONCE
