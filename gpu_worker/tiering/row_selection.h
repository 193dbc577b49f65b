// Selection in the cache: which rows a decode step reads, by the bounds of
// groups of keys (Quest) or by a scorer of the sequence's own. DESIGN 5.5,
// ALGORITHMS 8 and 9.
//
// Destroys nothing, and knows nothing of tiers: a row is read or not whether it
// lies in T0 or on a node, so the same choice gives the same bits everywhere.
// Rows of the prompt, and the first layers, read everything. A group's bounds
// are made when it is full, from keys that never change again; the group that
// is being filled is always read. They cost 8 * head_dim bytes of host memory
// per group, layer and KV head: with groups of 16 positions an eighth of what
// the rows take in bf16.
//
// Engine thread only.
#ifndef FARKV_GPU_WORKER_TIERING_ROW_SELECTION_H_
#define FARKV_GPU_WORKER_TIERING_ROW_SELECTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/step.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "kernels/stream.h"

namespace farkv {

// INVALID_ARGUMENT naming the field, its value and the allowed range.
absl::Status CheckSelection(const SequenceSpec& spec);

// Call once for a sequence that was opened.
void PrepareSelection(Sequence& sequence, const KvGeometry& geometry);

// Chooses what the one row of `part` reads of `layer`, part.Selects(layer);
// `queries` is its f32 [num_query_heads][head_dim]. INTERNAL when a scorer does
// not answer for all groups, or its own error.
absl::Status ChooseRows(const StepPart& part, int layer, const float* queries,
                        const KvGeometry& geometry, int num_query_heads);

// After a committed step, before rows are destroyed: counts what was read, and
// makes the bounds of groups that are full since. Their rows are in T0.
void NoteSelectedStep(const StepPart& part, const T0Lines& lines,
                      const KvGeometry& geometry, Stream& stream);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_ROW_SELECTION_H_
