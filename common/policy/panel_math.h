// Arithmetic of policies over all rows of a head. Every function has one order
// of separate fp32 operations (no fused multiply-add), so that every Highway
// target and plain scalar code give the same bits. Pure, thread-safe.
//
// Outputs over rows have `panels.padded()` elements; what lies beyond
// `panels.count` is unspecified unless said.
#ifndef FARKV_COMMON_POLICY_PANEL_MATH_H_
#define FARKV_COMMON_POLICY_PANEL_MATH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/policy/head_vectors.h"

namespace farkv {

// out[r][i] = sum over c, ascending from 0, of left[r][c] * rows[i][c]. `left`
// is num_left x panels.dim, `out` num_left x panels.padded(), row-major.
void MultiplyPanels(const float* left, int64_t num_left,
                    const HeadPanels& panels, float* out);

// |row|^2, elements ascending.
std::vector<float> SquaredNorms(const HeadPanels& panels);

// |G row|^2 for G of rank x panels.dim, row-major: products as MultiplyPanels,
// squares added in the order of G's rows.
std::vector<float> ProjectedNorms(std::span<const float> projection,
                                  const HeadPanels& panels);

// max - min over the elements of each row; NaN when one of them is NaN.
std::vector<float> Ranges(const HeadPanels& panels);

// sum over elements c, ascending, of the larger of q[c] * low[i][c] and q[c] *
// high[i][c]; `low` and `high` have one shape. NaN when one of them is.
std::vector<float> SumsOfLarger(const float* q, const HeadPanels& low,
                                const HeadPanels& high);

// Replaces logits[0 .. count) by their softmax and what follows, up to the next
// multiple of 16, by zero; `logits` has that much room. A logit of -inf weighs
// 0. A logit that is NaN or +inf becomes NaN and takes no part in the sum.
// False, and all zero, when no logit is finite.
//
// exp is AttentionExp; element i is added to lane i % 16, lanes are added in
// halves.
bool SoftmaxInPlace(float* logits, int64_t count);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_PANEL_MATH_H_
