// Scorers that need no live queries (ALGORITHMS 10.3), so that the node which
// holds the rows can rank them, and the weighting of VATP (10.2). A scorer
// gives a number per row, larger stays, and chooses nothing. Pure, thread-safe;
// the same bits on every machine.
#ifndef FARKV_COMMON_POLICY_ATTENTION_FREE_SCORERS_H_
#define FARKV_COMMON_POLICY_ATTENTION_FREE_SCORERS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/policy/head_vectors.h"

namespace farkv {

// KeyDiff (arXiv 2504.15364): -cos(k_i, mean of the unit keys). A key without a
// direction (norm 0 or not finite) is not in the mean; its score is NaN.
std::vector<float> KeyDiffScores(const HeadPanels& keys);

// What the next queries of the heads that read one KV head look like, rotated
// by the mean rotation over the positions to come. Borrowed for the call.
struct QueryMoments {
  int32_t num_heads = 0;
  std::span<const float> mean;        // [num_heads][dim]
  std::span<const float> covariance;  // [num_heads][dim][dim]
};

// Expected Attention (arXiv 2510.00636): softmax over the keys of mean . k_i /
// sqrt(dim) + k_i^T covariance k_i / (2 dim), averaged over the query heads.
std::vector<float> ExpectedAttention(const QueryMoments& queries,
                                     const HeadPanels& keys);

// |v_i| in the sum and the square-root sense, for scores times value norms:
// VATP (attention x L1) and Expected Attention (x L2).
std::vector<float> ValueNormsL1(const HeadPanels& values);
std::vector<float> ValueNormsL2(const HeadPanels& values);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_ATTENTION_FREE_SCORERS_H_
