// Attention of query rows over paged KV rows, by leaves that merge along the
// tree of common/attention_tree; with cumulative scores.
//
// Goals: the same bits for the same rows whatever their placement (runs),
// thread count, batch company and prefill chunking; one leaf code for prefill,
// decode and a memory node's pushdown. Non-goals: sliding windows, soft caps.
//
// A leaf is the partial attention (m, l, O) of one query head over the live
// rows of one page at positions <= the query's: m is the largest logit, l the
// sum of exp(logit - m), O the unnormalised sum of exp(logit - m) * v, all
// fp32. Dead slots have weight +0 and their K and V are never read. The query
// is rounded once to the KV dtype. DESIGN 3, 5.3 and 13; ALGORITHMS 12.1.
//
// Thread-safe on different streams and threads: nothing is shared. Scratch
// (about 50 MiB at most, or one row block of a very long context) stays with
// the threads that ran an operation, so that no later one allocates.
#ifndef FARKV_KERNELS_ATTENTION_H_
#define FARKV_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/attention_tree/merge.h"
#include "common/attention_tree/tree.h"
#include "common/base/thread_pool.h"
#include "common/layout/kv_geometry.h"
#include "kernels/stream.h"

namespace farkv {

// What a run points into; for counters and checks, never for arithmetic.
enum class RunSource : uint8_t { kT0Line, kStaging, kMappedPage };

// Rows of one page that lie in one block (a T0 line, a staging piece or a
// mapped page): slot first_slot + i of KV head h has its key at
// keys + h * head_stride + i * VectorBytes(), its value likewise at values.
struct Run {
  const std::byte* keys = nullptr;    // head 0, first slot of the run
  const std::byte* values = nullptr;  // head 0, first slot of the run
  size_t head_stride = 0;             // bytes from head h to head h + 1
  uint8_t first_slot = 0;
  uint8_t length = 0;
  RunSource source = RunSource::kT0Line;
  // 8 or 4: the run is a whole T2 page, its only one; `keys` is head 0's part
  // (page_format.h), checked, `values` is not used. 0: full precision.
  uint8_t t2_bits = 0;
};

// One page of one layer as attention reads it. Runs are disjoint, ascending
// and cover every live slot; slots that no run covers must be dead.
struct PageRuns {
  int32_t page_index = 0;
  // [num_kv_heads] bit i: slot i exists for that head. Borrowed.
  const uint64_t* live = nullptr;
  std::span<const Run> runs;
};

// An aligned subtree of one query row's leaves, computed by another party.
struct ForeignSubtree {
  SubtreeId id;
  PartialView partials;  // of all query heads, host memory, borrowed
};

// The pages of a decode row that others compute meanwhile (pushdown).
struct AttentionElsewhere {
  // Returns when `subtrees` is final. Called once, when the own leaves have
  // been computed, on the thread that runs the operation; must not itself run
  // one.
  std::function<void()> wait;
  // Maximal complete ones, ascending, none over a page of the sequence's own.
  std::vector<ForeignSubtree> subtrees;
  // Written: the row's final m and l, [num_query_heads] each, host memory.
  std::vector<float> m, l;
};

// The query rows of one sequence: consecutive positions, all of whose K and V
// (the queries' own included) are already in `pages` or elsewhere.
struct AttentionSequence {
  int32_t first_row = 0;            // row in AttentionArgs::queries and ::out
  int32_t num_rows = 0;             // 1 in decode, the chunk length in prefill
  int64_t first_position = 0;       // absolute position of the first query row
  std::span<const PageRuns> pages;  // ascending page_index
  // Cumulative attention per absolute position, fixed point 2^-40, already
  // averaged over layers and heads; the operation adds. Empty: no scoring.
  // Positions at or past its size are not scored; no two sequences of a call
  // may share it.
  std::span<int64_t> scores;
  // The same of this layer alone, per KV head: the mean over the query heads
  // that read it, [num_kv_heads][scores.size()]. Empty: not wanted. What others
  // compute (`elsewhere`) is not in it.
  std::span<int64_t> head_scores;
  // Not null: num_rows is 1, and other parties have more pages. Borrowed until
  // the operation has run.
  AttentionElsewhere* elsewhere = nullptr;
};

struct AttentionArgs {
  KvGeometry geometry;
  int32_t num_query_heads = 0;  // a multiple of geometry.num_kv_heads
  float scale = 0.0f;           // applied to logits; usually 1/sqrt(head_dim)
  const float* queries = nullptr;  // [rows][num_query_heads][head_dim]
  float* out = nullptr;            // [rows][num_query_heads][head_dim]
  std::span<const AttentionSequence> sequences;
};

// Computes `out`, normalised, for all sequences of one layer.
void Attention(Stream& stream, const AttentionArgs& args);

// ---- Pieces that a memory node uses for pushdown, synchronous on the CPU ----

// Partial results of one query row are a PartialView over num_query_heads
// heads. Borrowed.

// Where the results of AttentionSubtrees go; views are lent for the call.
struct SubtreeSink {
  // Each maximal complete subtree of args.sequences[sequence], ascending.
  std::function<void(int sequence, SubtreeId id, PartialView partials)> subtree;
  // Each leaf's exp(logit - m), [num_query_heads][64], and its m; `page` counts
  // in the sequence's pages. Empty: not wanted.
  std::function<void(int sequence, int page, const float* weights,
                     const float* m)>
      leaf;
};

// What a party that has only the given pages can compute of some decode rows
// (num_rows is 1): pages that are not given are elsewhere. Merged with the
// other parties' subtrees the bits are those of Attention(). `args.out` and
// scores are not used. The sink is called on the calling thread.
void AttentionSubtrees(ThreadPool& pool, const AttentionArgs& args,
                       const SubtreeSink& sink);

// Leaf of one page for one query row at `position`. `weights`, when not null,
// receives exp(logit - m) as [num_query_heads][64], +0 where dead.
void AttentionLeaf(const AttentionArgs& args, const float* query_row,
                   int64_t position, const PageRuns& page, PartialView result,
                   float* weights);

// Adds one leaf's share to the scores of its 64 positions. Per slot, the
// heads' weights * exp(m_leaf - m) / l are added in fp32 in head order, times
// 1 / (num_layers * num_query_heads), rounded to nearest to 2^-40.
// `page_scores` is [64].
void AddLeafScores(const AttentionArgs& args, const float* weights,
                   const float* m_leaf, const float* m, const float* l,
                   int64_t* page_scores);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_H_
