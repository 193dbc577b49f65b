// Sums of attention weights over heads, for the cumulative scores. Internal to
// kernels/. The same bits on every Highway target.
#ifndef FARKV_KERNELS_ATTENTION_SCORES_H_
#define FARKV_KERNELS_ATTENTION_SCORES_H_

#include <cstdint>

namespace farkv {

// scores[s] += round(scale * sum over heads, in head order, of
// weights[h][s] * exp(m_leaf[h] - m[h]) / l[h]) for the 64 slots of a page,
// ties to even. Sums are fp32, the scaling is in double and must stay below
// 2^51. A head without rows in the leaf (m_leaf = -inf) adds nothing.
struct LeafScoreCall {
  int num_heads = 0;
  const float* weights = nullptr;  // [num_heads][64]
  const float* m_leaf = nullptr;   // [num_heads], likewise m and l
  const float* m = nullptr;
  const float* l = nullptr;
  double scale = 0;
};
void AddPageScores(const LeafScoreCall& call, int64_t* scores);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_SCORES_H_
