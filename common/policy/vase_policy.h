// VaSE (arXiv 2606.03928, ALGORITHMS 7): never destroy the rows whose values
// have a large range, choose the rest at random in proportion to attention
// (AttnV); or CurDKV with a fresh projection at each event (DKV). Pure.
#ifndef FARKV_COMMON_POLICY_VASE_POLICY_H_
#define FARKV_COMMON_POLICY_VASE_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/cur_dkv_policy.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"
#include "common/policy/ranking.h"

namespace farkv {

// Reads: values; keys and window, or mass. With mass each row is ranked by
// itself, so nodes can do it.
struct VaseAttnVPolicy {
  static constexpr int64_t kQuarter = -1;

  // The buffer is the window: youngest tokens, always kept.
  WindowSettings window = {WindowScorer::kCandidateMean, 64, 5};
  // Positions [0, sinks), always kept; they use up value tokens.
  int64_t sinks = 4;
  // Rows kept for their value range, N_v; kQuarter: a quarter of what stays
  // beside a protected prompt (PlanDestruction resolves it), or of all.
  int64_t value_tokens = kQuarter;

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  // num_by_measure of the result counts the sinks among the input's own rows; a
  // party without the whole head leaves it to the one that merges.
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
  // Places of value_tokens that sinks older than the window leave; reads the
  // input's positions and counts only.
  int64_t NumByMeasure(const EvictionInput& input) const;
};

// Reads: keys and values.
struct VaseDkvPolicy {
  int64_t buffer = 64;
  int64_t sinks = 4;
  int32_t rank = 20;

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

// Drawing rows without replacement in proportion to `weight` is keeping those
// with the largest log(weight) - log(-log(unit)), rounded to fp32. A weight of
// 0 is EvictionRow::kLastKey, one that is not a weight NaN.
double SamplingKey(float weight, double unit);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_VASE_POLICY_H_
