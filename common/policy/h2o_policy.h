// H2O (arXiv 2306.14048, ALGORITHMS 2): heavy hitters by cumulative attention
// of the head's group, and the recent ones. Pure.
#ifndef FARKV_COMMON_POLICY_H2O_POLICY_H_
#define FARKV_COMMON_POLICY_H2O_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"

namespace farkv {

// Reads: cumulative (per KV head: the sum over its query heads ranks as their
// mean does), or mass.
struct H2oPolicy {
  static constexpr int64_t kHalf = -1;

  // Youngest tokens that always stay; kHalf: half of what stays beside a
  // protected prompt (PlanDestruction resolves it), or of all.
  int64_t recent = kHalf;

  absl::Status Validate() const;
  // Every step over the budget: one token goes per step.
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_H2O_POLICY_H_
