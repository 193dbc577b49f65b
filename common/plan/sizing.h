// What a number of sequences of one length take: T0 of the worker, memory of
// the nodes, and what a step reads outside T0. DESIGN 2, 3, 5.2, 6 and 13;
// sizes are those of common/page and common/layout, and the tiers those that
// common/policy/placement.h makes of a sequence whose scores are random: where
// real ones favour neighbours, pages in a row are cold, and a pushdown has
// fewer results to send than predicted here.
//
// Goals: exact sizes before anything runs. Non-goals: parking, prefill, pages
// in quarantine. Pure functions of plain values.
#ifndef FARKV_COMMON_PLAN_SIZING_H_
#define FARKV_COMMON_PLAN_SIZING_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/plan/cold_cost.h"
#include "common/plan/model_shape.h"
#include "common/policy/placement_settings.h"

namespace farkv {

struct Workload {
  int64_t tokens = 0;         // of each sequence, its prompt included
  int64_t prompt_tokens = 1;  // of these
  int64_t batch = 1;          // sequences at once
  DType kv_dtype = DType::kBf16;
  // Device memory for T0, in bytes; 0: as much as hbm_ratio wants.
  uint64_t t0_bytes = 0;
  // Share of the unprotected tokens in T0, per 10,000; nullopt: the largest at
  // which t0_bytes holds the batch.
  std::optional<int32_t> hbm_ratio;
  PlacementSettings placement;    // but for hbm_ratio
  int32_t t2_ratio = 0;           // share of the tokens outside T0, per 10,000
  int t2_bits = 8;                // or 4
  int nodes = 1;                  // sequences are spread evenly, each on one
  int replicas = 1;               // nodes that hold each page
  int32_t high_watermark = 9500;  // of a node's pools, per 10,000

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;
};

// Of one sequence, in tokens. Together: Workload::tokens.
struct TierSplit {
  int64_t t0 = 0, t1 = 0, t2 = 0;
  int64_t protected_tokens = 0;  // of t0: they never leave it
  // Pages of a layer with a row outside T0, and those that are in T2.
  int64_t cold_pages = 0, t2_pages = 0;
};

// Of one step of one sequence, all layers together.
struct ColdStep {
  uint64_t mapped_bytes = 0;       // cold rows as they lie, T2 compressed
  uint64_t fetch_bytes = 0;        // the same as they travel
  uint64_t attend_rows = 0;        // of whole pages, by a node
  uint64_t attend_bytes = 0;       // that it reads for them
  uint64_t message_bytes = 0;      // of a pushdown, both ways
  int64_t subtrees = 0;            // of a layer: partial results that come back
  int64_t own_tokens = 0;          // that no pushed page holds
  uint64_t layer_fetch_bytes = 0;  // of one layer, without checksums
};

struct Sizes {
  // KV of a token, all layers, and of a sequence: rows only.
  uint64_t token_bytes = 0, sequence_bytes = 0;
  int32_t hbm_ratio = 0;  // in effect, per 10,000

  uint64_t t0_bytes = 0;        // asked for, or as much as the batch takes
  uint64_t t0_share_bytes = 0;  // promised to a sequence when it is admitted
  int64_t t0_tokens = 0;        // positions that T0 has room for
  int64_t fitting = 0;          // sequences that T0 admits at once
  int64_t running = 0;          // the batch, or those of it that fit

  TierSplit split;
  ColdStep step;

  // Bytes of a page in a pool, header and rounding included.
  uint64_t t1_page_bytes = 0, t2_page_bytes = 0;
  int64_t pages = 0;  // of a layer, the one that is being written included
  // Pools of all nodes together, replicas included: pages, and with the room
  // that the watermark keeps free, in whole slabs of each node.
  uint64_t t1_bytes = 0, t2_bytes = 0;
  uint64_t t1_pool_bytes = 0, t2_pool_bytes = 0;
  int64_t sequences_per_node = 0;  // of the node that has most
  // Sealed pages on their way to nodes, per step of all that run.
  double store_bytes_per_step = 0;
};

// INVALID_ARGUMENT for an invalid shape or workload; RESOURCE_EXHAUSTED when T0
// holds not even one sequence, naming both sizes.
absl::StatusOr<Sizes> SizesOf(const ModelShape& shape,
                              const Workload& workload);

}  // namespace farkv

#endif  // FARKV_COMMON_PLAN_SIZING_H_
