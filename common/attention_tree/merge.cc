#include "common/attention_tree/merge.h"

#include <cstddef>
#include <cstdint>

// Scalable vectors run the fixed-width target, as all kernels do.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/attention_tree/merge.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After foreach_target.h, so that each target sees it anew.
#include "common/attention_tree/attention_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// head_dim is a multiple of 16, so vectors of up to 16 lanes leave no rest.
using FloatTag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<FloatTag>;
constexpr int kChunk = 16;  // heads whose weights are computed at once

// wL and wR of up to kChunk heads. Garbage where a side is empty.
void RescaleWeights(int count, const float* left, const float* right, float* wl,
                    float* wr) {
  const FloatTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  HWY_ALIGN float a[kChunk] = {};
  HWY_ALIGN float b[kChunk] = {};
  for (int i = 0; i < count; ++i) {
    a[i] = left[i];
    b[i] = right[i];
  }
  for (int i = 0; i < count; i += lanes) {
    const Vector va = hn::Load(d, a + i);
    const Vector vb = hn::Load(d, b + i);
    const Vector m = hn::Max(va, vb);
    hn::Store(AttentionExp(d, hn::Sub(va, m)), d, wl + i);
    hn::Store(AttentionExp(d, hn::Sub(vb, m)), d, wr + i);
  }
}

void AddScaled(int head_dim, float wl, float wr, float* left,
               const float* right) {
  const FloatTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const Vector vl = hn::Set(d, wl);
  const Vector vr = hn::Set(d, wr);
  for (int i = 0; i < head_dim; i += lanes) {
    const Vector scaled = hn::Mul(hn::LoadU(d, left + i), vl);
    const Vector other = hn::Mul(hn::LoadU(d, right + i), vr);
    hn::StoreU(hn::Add(scaled, other), d, left + i);
  }
}

void Merge(int num_heads, int head_dim, PartialView left, PartialView right) {
  const float empty = -__builtin_inff();
  HWY_ALIGN float wl[kChunk];
  HWY_ALIGN float wr[kChunk];
  for (int h = 0; h < num_heads; ++h) {
    const int i = h % kChunk;
    if (i == 0) {
      const int rest = num_heads - h;
      RescaleWeights(rest < kChunk ? rest : kChunk, left.m + h, right.m + h, wl,
                     wr);
    }
    if (right.m[h] == empty) continue;
    float* out = left.out + static_cast<ptrdiff_t>(h) * head_dim;
    const float* other = right.out + static_cast<ptrdiff_t>(h) * head_dim;
    if (left.m[h] == empty) {
      left.m[h] = right.m[h];
      left.l[h] = right.l[h];
      __builtin_memcpy(out, other,
                       static_cast<size_t>(head_dim) * sizeof(float));
      continue;
    }
    if (left.m[h] < right.m[h]) left.m[h] = right.m[h];
    left.l[h] = left.l[h] * wl[i] + right.l[h] * wr[i];
    AddScaled(head_dim, wl[i], wr[i], out, other);
  }
}

void Normalize(int num_heads, int head_dim, PartialView view, float* out) {
  const FloatTag d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int h = 0; h < num_heads; ++h) {
    const ptrdiff_t base = static_cast<ptrdiff_t>(h) * head_dim;
    const bool empty = view.l[h] == 0.0f;
    const Vector l = hn::Set(d, view.l[h]);
    for (int i = 0; i < head_dim; i += lanes) {
      const Vector sum = hn::LoadU(d, view.out + base + i);
      hn::StoreU(empty ? hn::Zero(d) : hn::Div(sum, l), d, out + base + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <limits>

namespace farkv {

HWY_EXPORT(Merge);
HWY_EXPORT(Normalize);

void ClearPartials(int num_heads, int head_dim, PartialView view) {
  std::fill_n(view.m, num_heads, -std::numeric_limits<float>::infinity());
  std::fill_n(view.l, num_heads, 0.0f);
  std::fill_n(view.out,
              static_cast<size_t>(num_heads) * static_cast<size_t>(head_dim),
              0.0f);
}

void CopyPartials(int num_heads, int head_dim, PartialView from,
                  PartialView to) {
  std::copy_n(from.m, num_heads, to.m);
  std::copy_n(from.l, num_heads, to.l);
  std::copy_n(from.out,
              static_cast<size_t>(num_heads) * static_cast<size_t>(head_dim),
              to.out);
}

void MergePartials(int num_heads, int head_dim, PartialView left,
                   PartialView right) {
  HWY_DYNAMIC_DISPATCH(Merge)(num_heads, head_dim, left, right);
}

void NormalizePartials(int num_heads, int head_dim, PartialView view,
                       float* out) {
  HWY_DYNAMIC_DISPATCH(Normalize)(num_heads, head_dim, view, out);
}

}  // namespace farkv
#endif  // HWY_ONCE
