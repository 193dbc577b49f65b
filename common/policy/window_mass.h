// Attention mass from a window of queries: the scorers of SnapKV in its three
// published forms (ALGORITHMS 4). A scorer gives a number per row and chooses
// nothing. Pure, thread-safe; the same bits on every machine.
#ifndef FARKV_COMMON_POLICY_WINDOW_MASS_H_
#define FARKV_COMMON_POLICY_WINDOW_MASS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/policy/eviction_input.h"

namespace farkv {

// Per query head, the softmax rows of the window added over its queries, for
// the first `count` rows: [num_heads][count]. A query without a finite logit
// adds nothing.
//
// Causal: the softmax runs over all rows that the query could see. Needs every
// row of the window in `keys`.
std::vector<float> CausalWindowSums(const WindowQueries& window,
                                    const HeadPanels& keys, int64_t count);
// The softmax runs over the first `count` rows only; they must all precede the
// window.
std::vector<float> CandidateWindowSums(const WindowQueries& window,
                                       const HeadPanels& keys, int64_t count);
// Likewise, of the largest logit over the query heads: [count].
std::vector<float> GroupMaxWindowSums(const WindowQueries& window,
                                      const HeadPanels& keys, int64_t count);

// Over `kernel` (odd) neighbours; what lies outside counts as zero in the
// average and not at all in the maximum. A NaN makes its neighbours NaN.
std::vector<float> PoolAverage(std::span<const float> in, int32_t kernel);
std::vector<float> PoolMax(std::span<const float> in, int32_t kernel);

// Mean over the window's queries, average pool, mean over the query heads.
std::vector<float> MeanPooledMass(std::span<const float> sums,
                                  const WindowQueries& window, int32_t kernel);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_WINDOW_MASS_H_
