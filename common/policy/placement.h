// Placement: which groups of g tokens of one sequence attention reads from T0
// and which stay on their nodes. One pure function; the same inputs give the
// same plan on every machine. ALGORITHMS 1.2 and 1.4, DESIGN 5.2 and 5.4.
//
// Goals: the paper's partition, in integers. Non-goals: moving anything (the
// plan says what, the tiering room says when), choosing between T1 and T2, and
// destroying: `num_evicted` is the destroying policy's count at this event.
//
// Positions and groups. Group k holds positions [k*g, (k+1)*g); the last one
// may be short. Borders fall anywhere inside a group, so:
//  - protected tokens are the prompt (unless it may leave T0), the first
//    `sinks` generated and the youngest `recent` tokens. A live group with one
//    of them, dead or live, is protected whole: all its live tokens are in T0,
//    and none of them is in U.
//  - the tail, positions from `sealed_tokens` on, is not stored and cannot be
//    cold. A group with a tail position and no protected one stays in T0; its
//    tokens are in U and are the first to use up n_hbm. When the tail alone is
//    larger than n_hbm, it stays and no other group is taken.
//  - U, the unprotected tokens, are the live tokens of all other groups. A
//    group without a live token is in T3 and takes no part.
// n_hbm = floor(hbm_ratio * (|U| - num_evicted)). Groups are taken whole, best
// first, until the next one would exceed n_hbm. Best is the highest mean score
// of the live tokens (compared exactly); equal means keep the younger group.
#ifndef FARKV_COMMON_POLICY_PLACEMENT_H_
#define FARKV_COMMON_POLICY_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/kv_geometry.h"
#include "common/policy/placement_settings.h"

namespace farkv {

// Borrowed for the call. Spans are indexed by absolute position.
struct PlacementInput {
  // Cumulative attention, fixed point 2^-40; one per token ever processed.
  std::span<const int64_t> scores;
  // Where each token is now; T3 marks a dead one. As long as `scores`.
  std::span<const Tier> tiers;
  int64_t prompt_tokens = 0;
  // Positions below it are in sealed pages; at most the number of tokens.
  int64_t sealed_tokens = 0;
  // First position whose query has added to `scores`: 0 when the prompt was
  // scored, else prompt_tokens. For kAgeNormalised.
  int64_t first_scored_query = 0;
  // Tokens of U that a destroying policy takes at this event.
  int64_t num_evicted = 0;
  // Coordinates of kRandom's draws.
  uint64_t request = 0;
  uint64_t event = 0;
};

// The moves of one sequence at one event. Never modified once made.
struct PlacementPlan {
  int32_t granularity = 1;
  // Target of each group: T0, T1 (cold; a group in T2 stays there) or T3.
  std::vector<Tier> tiers;
  // Groups with a live token outside T0 that belongs into it, and groups with
  // one in T0 that may leave; ascending.
  std::vector<int64_t> promote;
  std::vector<int64_t> demote;

  // All in tokens.
  int64_t protected_tokens = 0;    // live, in protected groups
  int64_t unprotected_tokens = 0;  // |U|
  int64_t num_evicted = 0;
  int64_t n_hbm = 0;
  int64_t hbm_tokens = 0;  // of U, planned into T0, the tail included
  int64_t promoted_tokens = 0;
  int64_t demoted_tokens = 0;

  int64_t t0_tokens() const { return protected_tokens + hbm_tokens; }
};

// INVALID_ARGUMENT when the settings are invalid, the spans differ in length
// or a count is out of range. May be called between events too, for example
// while a prompt that may leave T0 is being processed.
absl::StatusOr<PlacementPlan> PlanPlacement(const PlacementSettings& settings,
                                            const PlacementInput& input);

// The positions below num_tokens that are in sealed pages.
constexpr int64_t SealedTokens(int64_t num_tokens) {
  return num_tokens / kPageTokens * kPageTokens;
}

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_PLACEMENT_H_
