// The leaf arithmetic and its implementations. Internal to kernels/ and its
// tests.
//
// One leaf call computes, for a few query heads of one KV head, the partials
// over the live rows of one page. A query head's bits depend on its query and
// the rows only, never on the other queries of the call. Logits, weights and
// O are fp32; each logit is one dot product in fixed element order times the
// scale; l adds the 64 slots' weights in a fixed order; each element of O adds
// weight * v over the live slots in ascending order.
//
// A leaf is bound by memory and by arithmetic alike, so each works in two steps
// (all logits and softmax, then the values) and prefetches rows of the leaves
// to come in both, evenly and twice: a CPU drops prefetches when its queue is
// full. `farkv-bench attention` measures it.
#ifndef FARKV_KERNELS_ATTENTION_LEAF_H_
#define FARKV_KERNELS_ATTENTION_LEAF_H_

#include <cstddef>
#include <cstdint>

#include "common/layout/kv_geometry.h"
#include "kernels/attention.h"

namespace farkv {

// Queries that a leaf computes together; a wider call is a loop over these.
inline constexpr int kLeafQueries = 4;

// Offsets and slots of a full page that lies in one run: the common case,
// shared by all its LeafRows.
struct DenseRows {
  // Makes it fit keys and values of `vector_bytes`.
  void Set(size_t vector_bytes);

  size_t vector_bytes = 0;
  uintptr_t offset[kPageTokens] = {};
  uint8_t slot[kPageTokens] = {};
};

// The live rows of one page for one KV head, ascending. Rows from `count` on
// repeat the last live one, so that an implementation may read in fours and
// prefetch without looking; dead rows are named nowhere.
struct LeafRows {
  LeafRows() = default;
  LeafRows(const LeafRows&) = delete;  // points into itself

  const std::byte* key(int i) const {
    return reinterpret_cast<const std::byte*>(keys + key_offset[i]);
  }
  const std::byte* value(int i) const {
    return reinterpret_cast<const std::byte*>(values + value_offset[i]);
  }

  int count = 0;
  uintptr_t keys = 0;
  uintptr_t values = 0;
  const uintptr_t* key_offset = nullptr;
  const uintptr_t* value_offset = nullptr;
  const uint8_t* slot = nullptr;  // of each live row
  // Used when the page is not dense.
  uintptr_t own_key[kPageTokens];
  uintptr_t own_value[kPageTokens];
  uint8_t own_slot[kPageTokens];
};

// Collects the rows of KV head `head` whose bit is set in `live`. `rows` may
// point into `dense`, which fits the geometry, and owns nothing.
void CollectRows(const DenseRows& dense, const PageRuns& page, int head,
                 uint64_t live, LeafRows& rows);

// Bits of the slots of a page at positions <= `position`.
uint64_t CausalMask(int32_t page_index, int64_t position);

// One query head: what it is, and where its results go. `weights` receives
// [64], +0 where dead; null when not wanted.
struct LeafQuery {
  const void* query = nullptr;  // head_dim elements as PackQuery wrote them
  float* m = nullptr;
  float* l = nullptr;
  float* out = nullptr;
  float* weights = nullptr;
};

struct LeafCall {
  const LeafRows* rows = nullptr;
  // What to prefetch, both null or both with rows: the leaf that comes next,
  // a second time, and one farther ahead, for the first time.
  const LeafRows* next = nullptr;
  const LeafRows* ahead = nullptr;
  const LeafQuery* queries = nullptr;
  int num_queries = 0;
  int head_dim = 0;
  float scale = 0.0f;
};

// One implementation. A process uses one per dtype for everything.
struct LeafKernel {
  size_t query_element_bytes = 0;
  // Rounds `count` elements of a query to the KV dtype, once.
  void (*pack_query)(const float* query, int count, void* packed) = nullptr;
  void (*leaf)(const LeafCall& call) = nullptr;
};

LeafKernel HighwayLeafKernel(DType dtype);
// Requires HasAvx512Bf16(); bf16 only.
LeafKernel Avx512Bf16LeafKernel();
// The one that Attention() and AttentionLeaf() use.
LeafKernel ChooseLeafKernel(DType dtype);

// Attention() and the others on the calling thread and `pool`, with a given
// implementation.
void RunAttention(ThreadPool& pool, const AttentionArgs& args,
                  const LeafKernel& kernel);
void RunSubtrees(ThreadPool& pool, const AttentionArgs& args,
                 const LeafKernel& kernel, const SubtreeSink& sink);
void RunLeaf(const AttentionArgs& args, const LeafKernel& kernel,
             const float* query_row, int64_t position, const PageRuns& page,
             PartialView result, float* weights);

}  // namespace farkv

#endif  // FARKV_KERNELS_ATTENTION_LEAF_H_
