// One round of Attention() in progress: its scratch and the work on one unit.
// Internal to kernels/.
#ifndef FARKV_KERNELS_ATTENTION_CALL_H_
#define FARKV_KERNELS_ATTENTION_CALL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/attention_leaf.h"
#include "kernels/attention_plan.h"

namespace farkv {

// Borrowed views; threads write disjoint parts of the scratch.
struct AttentionCall {
  const AttentionArgs* args = nullptr;
  const LeafKernel* kernel = nullptr;
  const AttentionRound* round = nullptr;
  float* partials = nullptr;     // [partial], each O, m, l of all query heads
  float* weights = nullptr;      // [leaf][query head][64]
  float* leaf_m = nullptr;       // [leaf][query head]
  std::byte* queries = nullptr;  // [row of the call][query head][head_dim]

  size_t heads() const { return static_cast<size_t>(args->num_query_heads); }
  size_t head_dim() const {
    return static_cast<size_t>(args->geometry.head_dim);
  }
  int group() const {
    return args->num_query_heads / args->geometry.num_kv_heads;
  }
  const RowBlock& BlockOf(const AttentionUnit& unit) const {
    return round->blocks[static_cast<size_t>(unit.block)];
  }
  const AttentionSequence& SequenceOf(const RowBlock& block) const {
    return args->sequences[static_cast<size_t>(block.sequence)];
  }
  // The row of the call's queries and outputs.
  size_t RowOf(const RowBlock& block, int row) const {
    return static_cast<size_t>(SequenceOf(block).first_row) +
           static_cast<size_t>(block.first_row) + static_cast<size_t>(row);
  }
  int64_t PositionOf(const RowBlock& block, int row) const {
    return SequenceOf(block).first_position + block.first_row + row;
  }
  PartialView Partial(const RowBlock& block, int split, int row) const {
    const size_t index =
        block.first_partial +
        static_cast<size_t>(split) * static_cast<size_t>(block.num_rows) +
        static_cast<size_t>(row);
    float* base = partials + index * heads() * (head_dim() + 2);
    return {.m = base + heads() * head_dim(),
            .l = base + heads() * (head_dim() + 1),
            .out = base};
  }
  size_t LeafOf(const RowBlock& block, int row, int page) const {
    return block.first_leaf +
           static_cast<size_t>(row) * static_cast<size_t>(block.num_pages) +
           static_cast<size_t>(page);
  }
  std::byte* QueryOf(size_t row, size_t head) const {
    return queries +
           (row * heads() + head) * head_dim() * kernel->query_element_bytes;
  }
};

// The leaf, or empty partials and +0 weights when no row is live.
void RunLeafCall(const LeafKernel& kernel, const LeafCall& call);

// Computes the subtree of one unit into the partials of its block and split,
// and its leaves' weights and m when the block is scored.
void RunUnit(const AttentionCall& call, const AttentionUnit& unit);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_CALL_H_
