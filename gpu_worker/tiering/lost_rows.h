// Rows of a sequence that exist nowhere any more, neither in T0 nor on a node
// that has them, and when these alone are computed again from the tokens.
// DESIGN 1 (P5) and 5.1.
//
// They are processed once more in ascending order, as a prefill with gaps: the
// others are read where they lie, and a row that sees the same rows has the
// same bits. Each goes to T0, whatever its plan says, until its page is stored
// again. Nothing is scored meanwhile: scores are cumulative, were added when
// the tokens were new, and stay. No plan is due either.
//
// Whoever cannot be mended so is recomputed as a whole, from its first token
// (KvCache::Restart), which makes scores and events again as well:
// - a sequence that may destroy rows, have some compressed, or selects: its
//   rows were computed from others than those that are left;
// - attention that a lost node has gathered and not sent (pushdown): only the
//   queries that are gone can make it again;
// - a node that answers and has failed the sequence before: a new session gives
//   it, or another one, pages of other memory.
//
// Pure but for their arguments. Engine thread only.
#ifndef FARKV_GPU_WORKER_TIERING_LOST_ROWS_H_
#define FARKV_GPU_WORKER_TIERING_LOST_ROWS_H_

#include <cstdint>
#include <vector>

#include "gpu_worker/tiering/page_table.h"
#include "gpu_worker/tiering/selected_rows.h"
#include "gpu_worker/tiering/sequence.h"

namespace farkv {

// Whether the sequence's rows depend on nothing but its tokens, and what it has
// lost can be told. `worker_t2_ratio` as TieringOptions::t2_ratio.
bool MayRecomputeLostRows(const Sequence& sequence, int32_t worker_t2_ratio);

// The positions whose rows are nowhere, ascending: those given up before and
// not yet computed again, and the cold ones of pages that a node has lost,
// whose node is not `healthy` (by node index), or that the reads of the last
// step have found to be bad (SequenceLoss).
std::vector<int64_t> FindLostPositions(const Sequence& sequence,
                                       const std::vector<bool>& healthy);

// Line sets that the first `num_rows` of the lost positions would take.
int64_t SetsForLost(const Sequence& sequence, int num_rows);

// Every row at a position below `end`, as a selection; no row of them has been
// destroyed.
std::vector<SelectedPage> LiveBefore(const PageTable& table, int64_t end,
                                     int num_kv_heads);

// The first `num_rows` of the lost positions have rows again; pages that are
// whole now are to be stored.
void NoteRecomputed(Sequence& sequence, int num_rows);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_LOST_ROWS_H_
