// The share of T0 that a sequence is promised when it is admitted:
// common/plan/t0_share.h. Pure.
#ifndef FARKV_GPU_WORKER_TIERING_ADMISSION_H_
#define FARKV_GPU_WORKER_TIERING_ADMISSION_H_

#include <cstdint>

#include "gpu_worker/tiering/kv_cache.h"

namespace farkv {

// Line sets of spec.placement.granularity positions.
int64_t ShareInSets(const SequenceSpec& spec, bool has_nodes);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_ADMISSION_H_
