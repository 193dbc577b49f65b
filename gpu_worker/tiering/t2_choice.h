// Which pages of a sequence their nodes should compress next. ALGORITHMS 11 and
// 15; DESIGN 6. Pure.
#ifndef FARKV_GPU_WORKER_TIERING_T2_CHOICE_H_
#define FARKV_GPU_WORKER_TIERING_T2_CHOICE_H_

#include <cstdint>
#include <vector>

#include "gpu_worker/tiering/sequence.h"

namespace farkv {

// Page indices, ascending, so that with them the tokens in T2 are as near to
// floor(ratio * tokens outside T0) as whole pages allow, and not above it;
// ratio per 10,000. Only stored T1 pages that the plan wants nothing of; those
// with the smallest cumulative attention first, the older one where it is
// equal. What is in T2 stays there. The plan counts, not what T0 holds just
// now: how fast promotions come in must not change what is compressed.
std::vector<int> ChooseT2Pages(const Sequence& sequence, int32_t ratio);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_T2_CHOICE_H_
