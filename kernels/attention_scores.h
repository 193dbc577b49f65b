// Sums of attention weights over heads, for the cumulative scores. Internal to
// kernels/. The same bits on every Highway target.
#ifndef FARKV_KERNELS_ATTENTION_SCORES_H_
#define FARKV_KERNELS_ATTENTION_SCORES_H_

#include <cstdint>

namespace farkv {

// factors[h] = exp(m_leaf[h] - m[h]) / l[h], 0 where the leaf is empty: what a
// leaf's weights of head h are to be multiplied with.
void LeafFactors(int num_heads, const float* m_leaf, const float* m,
                 const float* l, float* factors);

// sums[s] = sum over heads, in head order, of weights[h][s] * factors[h], for
// the 64 slots of a page.
void SumHeadWeights(int num_heads, const float* weights, const float* factors,
                    float* sums);

// scores[s] += round(sums[s] * scale), ties to even, for the 64 slots; each
// product must be below 2^51.
void AddRoundedScores(const float* sums, double scale, int64_t* scores);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_SCORES_H_
