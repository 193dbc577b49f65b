#include "common/policy/panel_math.h"

#include <cmath>

// Accumulators are arrays of vectors, which scalable vectors cannot form:
// such CPUs run the fixed-width target.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/policy/panel_math.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After foreach_target.h, so that each target sees it anew.
#include "common/attention_tree/attention_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<FloatTag>;
constexpr size_t kLanes = hn::MaxLanes(FloatTag());
constexpr size_t kRows = 16;
constexpr size_t kParts = kRows / kLanes;

template <size_t kLeft>
HWY_INLINE void MultiplyPanel(const float* left, size_t dim, const float* panel,
                              float* out, size_t out_stride) {
  const FloatTag d;
  Vector sums[kLeft][kParts];
  for (size_t r = 0; r < kLeft; ++r) {
    for (size_t p = 0; p < kParts; ++p) sums[r][p] = hn::Zero(d);
  }
  for (size_t c = 0; c < dim; ++c) {
    Vector elements[kParts];
    for (size_t p = 0; p < kParts; ++p) {
      elements[p] = hn::LoadU(d, panel + c * kRows + p * kLanes);
    }
    for (size_t r = 0; r < kLeft; ++r) {
      const Vector x = hn::Set(d, left[r * dim + c]);
      for (size_t p = 0; p < kParts; ++p) {
        sums[r][p] = hn::Add(sums[r][p], hn::Mul(x, elements[p]));
      }
    }
  }
  for (size_t r = 0; r < kLeft; ++r) {
    for (size_t p = 0; p < kParts; ++p) {
      hn::StoreU(sums[r][p], d, out + r * out_stride + p * kLanes);
    }
  }
}

void Multiply(const float* left, size_t num_left, const HeadPanels& panels,
              float* out) {
  // As many sums as the registers hold; decides speed, never bits.
  constexpr size_t kTile = kParts == 1 ? 8 : kParts == 2 ? 4 : 2;
  const auto dim = static_cast<size_t>(panels.dim);
  const auto stride = static_cast<size_t>(panels.padded());
  for (int64_t index = 0; index < panels.num_panels(); ++index) {
    const float* panel = panels.panel(index);
    float* to = out + static_cast<size_t>(index) * kRows;
    size_t r = 0;
    for (; r + kTile <= num_left; r += kTile) {
      MultiplyPanel<kTile>(left + r * dim, dim, panel, to + r * stride, stride);
    }
    for (; r < num_left; ++r) {
      MultiplyPanel<1>(left + r * dim, dim, panel, to + r * stride, stride);
    }
  }
}

// out[i] = sum over r of in[r][i]^2 for kRows columns of a matrix whose rows
// are `stride` apart.
HWY_INLINE void SumSquares(const float* in, size_t num_rows, size_t stride,
                           float* out) {
  const FloatTag d;
  for (size_t p = 0; p < kParts; ++p) {
    Vector sum = hn::Zero(d);
    for (size_t r = 0; r < num_rows; ++r) {
      const Vector x = hn::LoadU(d, in + r * stride + p * kLanes);
      sum = hn::Add(sum, hn::Mul(x, x));
    }
    hn::StoreU(sum, d, out + p * kLanes);
  }
}

void Norms(const HeadPanels& panels, float* out) {
  for (int64_t index = 0; index < panels.num_panels(); ++index) {
    SumSquares(panels.panel(index), static_cast<size_t>(panels.dim), kRows,
               out + static_cast<size_t>(index) * kRows);
  }
}

void ColumnNorms(const float* in, size_t num_rows, size_t stride, float* out) {
  for (size_t i = 0; i < stride; i += kRows) {
    SumSquares(in + i, num_rows, stride, out + i);
  }
}

// Max and Min of Highway differ between targets when an operand is NaN, and so
// does Ne.
HWY_INLINE Vector Larger(Vector x, Vector than) {
  return hn::IfThenElse(hn::Or(hn::Gt(x, than), hn::IsNaN(x)), x, than);
}

HWY_INLINE Vector Smaller(Vector x, Vector than) {
  return hn::IfThenElse(hn::Or(hn::Lt(x, than), hn::IsNaN(x)), x, than);
}

void RowRanges(const HeadPanels& panels, float* out) {
  const FloatTag d;
  for (int64_t index = 0; index < panels.num_panels(); ++index) {
    const float* panel = panels.panel(index);
    for (size_t p = 0; p < kParts; ++p) {
      Vector high = hn::LoadU(d, panel + p * kLanes);
      Vector low = high;
      for (size_t c = 1; c < static_cast<size_t>(panels.dim); ++c) {
        const Vector x = hn::LoadU(d, panel + c * kRows + p * kLanes);
        high = Larger(x, high);
        low = Smaller(x, low);
      }
      hn::StoreU(hn::Sub(high, low), d,
                 out + static_cast<size_t>(index) * kRows + p * kLanes);
    }
  }
}

void SumLarger(const float* q, const HeadPanels& low, const HeadPanels& high,
               float* out) {
  const FloatTag d;
  for (int64_t index = 0; index < low.num_panels(); ++index) {
    for (size_t p = 0; p < kParts; ++p) {
      Vector sum = hn::Zero(d);
      for (size_t c = 0; c < static_cast<size_t>(low.dim); ++c) {
        const size_t at = c * kRows + p * kLanes;
        const Vector x = hn::Set(d, q[c]);
        const Vector a = hn::Mul(x, hn::LoadU(d, low.panel(index) + at));
        const Vector b = hn::Mul(x, hn::LoadU(d, high.panel(index) + at));
        sum = hn::Add(sum, Larger(a, b));
      }
      hn::StoreU(sum, d, out + static_cast<size_t>(index) * kRows + p * kLanes);
    }
  }
}

// Largest finite element, -inf when there is none; the padding is -inf.
float LargestFinite(const float* x, size_t padded) {
  const FloatTag d;
  const Vector zero = hn::Zero(d);
  Vector best = hn::Set(d, -HUGE_VALF);
  for (size_t i = 0; i < padded; i += kLanes) {
    const Vector v = hn::LoadU(d, x + i);
    const auto finite = hn::Eq(hn::Sub(v, v), zero);
    best = hn::IfThenElse(hn::And(finite, hn::Gt(v, best)), v, best);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::Store(best, d, lanes);
  float largest = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) {
    if (lanes[i] > largest) largest = lanes[i];
  }
  return largest;
}

void Softmax(float* x, size_t padded, float largest) {
  const FloatTag d;
  const Vector zero = hn::Zero(d);
  const Vector shift = hn::Set(d, largest);
  const Vector infinity = hn::Set(d, HUGE_VALF);
  const Vector nan = hn::Set(d, __builtin_nanf(""));
  Vector sums[kParts];
  for (size_t p = 0; p < kParts; ++p) sums[p] = zero;
  for (size_t i = 0; i < padded; i += kRows) {
    for (size_t p = 0; p < kParts; ++p) {
      float* at = x + i + p * kLanes;
      const Vector v = hn::LoadU(d, at);
      const auto usable = hn::Lt(v, infinity);  // not NaN, not +inf
      const Vector e = AttentionExp(
          d, hn::IfThenElse(usable, hn::Sub(v, shift), hn::Set(d, -HUGE_VALF)));
      sums[p] = hn::Add(sums[p], e);
      hn::StoreU(hn::IfThenElse(usable, e, nan), d, at);
    }
  }
  HWY_ALIGN float lanes[kRows];
  for (size_t p = 0; p < kParts; ++p) {
    hn::Store(sums[p], d, lanes + p * kLanes);
  }
  for (size_t half = kRows / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  const Vector sum = hn::Set(d, lanes[0]);
  for (size_t i = 0; i < padded; i += kLanes) {
    hn::StoreU(hn::Div(hn::LoadU(d, x + i), sum), d, x + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <limits>

namespace farkv {

HWY_EXPORT(Multiply);
HWY_EXPORT(Norms);
HWY_EXPORT(ColumnNorms);
HWY_EXPORT(RowRanges);
HWY_EXPORT(SumLarger);
HWY_EXPORT(LargestFinite);
HWY_EXPORT(Softmax);

void MultiplyPanels(const float* left, int64_t num_left,
                    const HeadPanels& panels, float* out) {
  HWY_DYNAMIC_DISPATCH(Multiply)
  (left, static_cast<size_t>(num_left), panels, out);
}

std::vector<float> SquaredNorms(const HeadPanels& panels) {
  std::vector<float> norms(static_cast<size_t>(panels.padded()));
  HWY_DYNAMIC_DISPATCH(Norms)(panels, norms.data());
  return norms;
}

std::vector<float> ProjectedNorms(std::span<const float> projection,
                                  const HeadPanels& panels) {
  const auto stride = static_cast<size_t>(panels.padded());
  const size_t rank = projection.size() / static_cast<size_t>(panels.dim);
  std::vector<float> products(rank * stride);
  MultiplyPanels(projection.data(), static_cast<int64_t>(rank), panels,
                 products.data());
  std::vector<float> norms(stride);
  HWY_DYNAMIC_DISPATCH(ColumnNorms)
  (products.data(), rank, stride, norms.data());
  return norms;
}

std::vector<float> Ranges(const HeadPanels& panels) {
  std::vector<float> ranges(static_cast<size_t>(panels.padded()));
  HWY_DYNAMIC_DISPATCH(RowRanges)(panels, ranges.data());
  return ranges;
}

std::vector<float> SumsOfLarger(const float* q, const HeadPanels& low,
                                const HeadPanels& high) {
  std::vector<float> sums(static_cast<size_t>(low.padded()));
  HWY_DYNAMIC_DISPATCH(SumLarger)(q, low, high, sums.data());
  return sums;
}

bool SoftmaxInPlace(float* logits, int64_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto padded = static_cast<size_t>(
      (count + HeadPanels::kRows - 1) / HeadPanels::kRows * HeadPanels::kRows);
  std::fill(logits + count, logits + padded, -kInfinity);
  const float largest = HWY_DYNAMIC_DISPATCH(LargestFinite)(logits, padded);
  if (largest == -kInfinity) {
    std::fill(logits, logits + padded, 0.0f);
    return false;
  }
  HWY_DYNAMIC_DISPATCH(Softmax)(logits, padded, largest);
  return true;
}

}  // namespace farkv
#endif  // HWY_ONCE
