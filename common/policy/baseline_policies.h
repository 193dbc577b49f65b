// The destroying policies without a paper of their own formula: the Tiers
// paper's lowest cumulative attention, and the two baselines that every result
// needs beside it, random and recency (ALGORITHMS 1.2, 10.1, 15.5). Pure.
#ifndef FARKV_COMMON_POLICY_BASELINE_POLICIES_H_
#define FARKV_COMMON_POLICY_BASELINE_POLICIES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"

namespace farkv {

// Lowest cumulative attention goes. One decision for all layers and heads: the
// input's `cumulative` is the sequence's. Reads: cumulative, or mass.
struct TiersPolicy {
  int64_t interval = 64;
  int64_t sinks = 4;  // generated; the caller pins them (PinRows)
  int64_t recent = 128;

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

// A uniform draw per token, event and head. Reads nothing.
struct RandomPolicy {
  int64_t recent = 64;  // also the tokens between two events
  // One draw for all layers and heads: a fact loses all its copies at once.
  bool shared = false;

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

// The oldest go. Reads nothing.
struct RecencyPolicy {
  int64_t interval = 64;

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_BASELINE_POLICIES_H_
