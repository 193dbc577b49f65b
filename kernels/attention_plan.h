// How one call of Attention() is cut into work. Internal to kernels/. Pure;
// no choice made here changes a bit of the result, only time and memory.
//
// Rounds: as many row blocks as fit the scratch, at least one. A row block is
// a few consecutive query rows of one sequence, which share every page load.
// A unit is what one thread does: (row block, range of KV heads, aligned range
// of pages), and yields the partials of one subtree.
#ifndef FARKV_KERNELS_ATTENTION_PLAN_H_
#define FARKV_KERNELS_ATTENTION_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/attention_tree/tree.h"
#include "kernels/attention.h"

namespace farkv {

struct AttentionLimits {
  int num_threads = 1;
  // Partials of query rows, and leaves with weights, that a round may hold.
  size_t max_partials = 0;
  size_t max_leaves = 0;
  // For AttentionSubtrees: every unit is a complete subtree, and leaves are
  // kept whether or not a sequence has scores.
  bool subtrees = false;
  bool keep_leaves = false;
};

struct RowBlock {
  int sequence = 0;
  int first_row = 0;  // within the sequence
  int num_rows = 0;
  int num_pages = 0;    // pages of the sequence that its last row sees
  bool scored = false;  // leaves' weights and m are kept
  int num_splits = 0;
  // Partials of (split, row): first_partial + split * num_rows + row.
  size_t first_partial = 0;
  // Leaves of (row, page): first_leaf + row * num_pages + page, when scored.
  size_t first_leaf = 0;
};

struct AttentionUnit {
  int block = 0;
  int split = 0;
  SubtreeId subtree;
  int first_page = 0;  // ordinals in AttentionSequence::pages
  int num_pages = 0;
  int first_head = 0;  // KV heads
  int num_heads = 0;
};

struct AttentionRound {
  std::vector<RowBlock> blocks;
  std::vector<AttentionUnit> units;
  size_t num_partials = 0;
  size_t num_leaves = 0;
  // One entry per (split) of each block, block by block: block b's split s is
  // splits[first_split[b] + s].
  std::vector<SubtreeId> splits;
  std::vector<size_t> first_split;
};

// Where the next round starts.
struct AttentionCursor {
  size_t sequence = 0;
  int row = 0;
};

// Fills `round` from `cursor` on and moves the cursor; false when no rows are
// left. Vectors are reused.
bool PlanRound(const AttentionArgs& args, const AttentionLimits& limits,
               AttentionCursor& cursor, AttentionRound& round);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_PLAN_H_
