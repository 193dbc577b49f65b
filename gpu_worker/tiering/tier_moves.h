// Moves of one sequence between T0 and its nodes: drops at once, promotions
// when their rows have come. DESIGN 3, 5.2 and 5.4.
//
// Only stored pages are dropped, and only while their node answers. A drop or a
// promotion never changes what attention computes, only where it reads. Engine
// thread only.
#ifndef FARKV_GPU_WORKER_TIERING_TIER_MOVES_H_
#define FARKV_GPU_WORKER_TIERING_TIER_MOVES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gpu_worker/tiering/cold_reads.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "kernels/stream.h"

namespace farkv {

// Drops the groups of a stored page that its plan does not want in T0.
void DropUnwanted(Sequence& sequence, Page& page, T0Lines& lines);

// Drops every group that is stored.
void Park(Sequence& sequence, T0Lines& lines);

// Drops stored groups, oldest first and the prompt last, until the sequence
// is within its share or `sets` are free. Returns whether `sets` are free.
bool DropForRoom(Sequence& sequence, int64_t sets, T0Lines& lines);

// Marks full pages as sealed; call when a step's rows are there to stay.
void Seal(Sequence& sequence, int64_t first_position);

// Whether a placement plan is due after the step that began with
// `tokens_before`.
bool IsPlanDue(const Sequence& sequence, int64_t tokens_before);

// Makes a placement plan and drops what it demotes. Drops of pages that are not
// stored yet are counted and happen when they are; those of pages whose node
// does not answer happen by a later plan.
absl::Status MakePlan(Sequence& sequence, T0Lines& lines);

// Asks for the rows of some groups that the plan wants in T0 and that fit,
// unless rows are on their way already.
void StartPromotions(Sequence& sequence, const T0Lines& lines,
                     const TieringOptions& options, ColdReads& reads);
// Between steps: puts rows that have come into lines, in stream order. Groups
// that are wanted no longer are passed over.
void FinishPromotions(Sequence& sequence, T0Lines& lines,
                      const KvGeometry& geometry, Stream& stream);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_TIER_MOVES_H_
