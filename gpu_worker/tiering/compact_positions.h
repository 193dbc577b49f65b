// Compact positions: whenever rows have been destroyed, the keys that are left
// are turned to count on without gaps, each KV head for itself (StreamingLLM,
// ALGORITHMS 0.4 and 3). For caches without nodes, in benches: stored rows
// never change otherwise.
//
// A key is turned from what was written each time, so that it is rounded once,
// however often it moves; that costs a copy of all keys in host memory. Engine
// thread only.
#ifndef FARKV_GPU_WORKER_TIERING_COMPACT_POSITIONS_H_
#define FARKV_GPU_WORKER_TIERING_COMPACT_POSITIONS_H_

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/step.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "kernels/stream.h"

namespace farkv {

// INVALID_ARGUMENT saying what compact positions do not go with.
absl::Status CheckCompaction(const SequenceSpec& spec,
                             const KvGeometry& geometry, bool has_nodes);

// After a committed step, before rows are destroyed: copies the keys that it
// has written.
void KeepWrittenKeys(const StepPart& part, const T0Lines& lines,
                     const KvGeometry& geometry, Stream& stream);

// After that: turns what moved, in T0.
void TurnMovedKeys(Sequence& sequence, const T0Lines& lines,
                   const KvGeometry& geometry, Stream& stream);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_COMPACT_POSITIONS_H_
