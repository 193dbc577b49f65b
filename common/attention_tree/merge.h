// Partial attention results and how two of them become one: the only place
// where the rescale formula is written (ALGORITHMS 12.1). Leaves, tree, worker
// and node all use it.
//
// A partial of one query head over a set of rows: m the largest logit, l the
// sum of exp(logit - m), O[head_dim] the unnormalised sum of
// exp(logit - m) * v; fp32, natural exponential. Empty is m = -inf, l = 0,
// O = 0. Thread-safe: pure functions of what they are given.
#ifndef FARKV_COMMON_ATTENTION_TREE_MERGE_H_
#define FARKV_COMMON_ATTENTION_TREE_MERGE_H_

namespace farkv {

// Partials of num_heads query heads: m[h], l[h] and out[h * head_dim ...].
// Borrowed.
struct PartialView {
  float* m = nullptr;
  float* l = nullptr;
  float* out = nullptr;
};

// Makes every head empty.
void ClearPartials(int num_heads, int head_dim, PartialView view);

void CopyPartials(int num_heads, int head_dim, PartialView from,
                  PartialView to);

// left = merge of left and right, head by head: with m = max(mL, mR) and
// w = exp(m_ - m), l = lL * wL + lR * wR and O likewise, multiplies and adds
// apart. An empty side leaves the other's bits unchanged; two empty sides stay
// empty. The bits are the same on every Highway target.
void MergePartials(int num_heads, int head_dim, PartialView left,
                   PartialView right);

// out = O / l per head, 0 for an empty head. `out` may be view.out.
void NormalizePartials(int num_heads, int head_dim, PartialView view,
                       float* out);

}  // namespace farkv

#endif  // FARKV_COMMON_ATTENTION_TREE_MERGE_H_
