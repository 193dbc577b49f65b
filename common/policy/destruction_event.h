// When a sequence loses rows, how many stay and which must: a policy, used
// alone under a fixed or proportional budget by its own trigger, or under the
// hierarchy by its schedule and two bounds (DESIGN 5.4). One call per step;
// every party that knows the counts gets the same answer. Pure, thread-safe.
#ifndef FARKV_COMMON_POLICY_DESTRUCTION_EVENT_H_
#define FARKV_COMMON_POLICY_DESTRUCTION_EVENT_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/policy/destruction_budget.h"
#include "common/policy/destruction_policy.h"
#include "common/policy/eviction_input.h"

namespace farkv {

struct DestructionSettings {
  DestructionPolicy policy;
  DestructionBudget budget;
  // Off only for rows of a table that follow a paper to the letter.
  bool protect_prompt = true;
  // Schedule and protected tokens of the hierarchy (kBounds), as in
  // PlacementSettings.
  int64_t interval = 64;
  int64_t sinks = 4;
  int64_t recent = 128;

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;
  // INVALID_ARGUMENT when a fixed budget cannot hold a request with this
  // prompt; the other kinds grow with it.
  absl::Status ValidateRequest(int64_t prompt_tokens) const;
};

// Of one sequence, after a step. `cached` and `destroyed` are rows of each
// head.
struct SequenceCounts {
  int64_t prompt_tokens = 0;
  int64_t generated = 0;
  int64_t cached = 0;
  int64_t destroyed = 0;
};

struct DestructionEvent {
  // The settings' policy, its counts that depend on the budget resolved: every
  // party that ranks rows is given this one.
  DestructionPolicy policy;
  int64_t num_kept = 0;  // EvictionInput::num_kept
  PinnedTokens pinned;   // of EvictionInput::pinned
};

// The event that takes place after this step; nullopt when none does or when
// it would destroy nothing.
std::optional<DestructionEvent> PlanDestruction(
    const DestructionSettings& settings, const SequenceCounts& counts);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_DESTRUCTION_EVENT_H_
