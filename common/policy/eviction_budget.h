// How many tokens an event may destroy: two bounds, never one (DESIGN 5.4,
// ALGORITHMS 1.3). Which tokens is a destroying policy's choice. Pure.
#ifndef FARKV_COMMON_POLICY_EVICTION_BUDGET_H_
#define FARKV_COMMON_POLICY_EVICTION_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"

namespace farkv {

// Ratios per 10,000. Both default to zero: nothing is destroyed.
struct EvictionBudget {
  // Share of the unprotected tokens that one event destroys. Compounds: 3 %
  // destroys 23 % of a chain of 1,422 tokens and 87 % of one of 16,384.
  int32_t per_event_ratio = 0;
  // Share of all generated tokens that may ever be destroyed.
  int32_t cumulative_cap = 0;

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;
};

// min(floor(r * unprotected), floor(cap * generated) - destroyed), never
// negative. `destroyed` counts the sequence's tokens destroyed so far.
int64_t NumEvicted(const EvictionBudget& budget, int64_t unprotected,
                   int64_t generated, int64_t destroyed);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_EVICTION_BUDGET_H_
