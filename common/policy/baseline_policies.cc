#include "common/policy/baseline_policies.h"

#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/cumulative_keys.h"
#include "common/policy/limits.h"
#include "common/policy/ranking.h"

namespace farkv {
absl::Status TiersPolicy::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("interval", interval, 1, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("sinks", sinks, 0, kMaxPolicyTokens));
  return CheckRange("recent", recent, 0, kMaxPolicyTokens);
}

bool TiersPolicy::IsDue(const EventCounts& counts) const {
  return counts.generated % interval == 0 &&
         counts.generated > sinks + recent && counts.cached > counts.budget;
}

int64_t TiersPolicy::AlwaysKept(int64_t /*room*/) const {
  return sinks + recent;
}

absl::StatusOr<RankedRows> TiersPolicy::Rank(const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  RankedRows ranked = StartRanking(input, 0, recent);
  FARKV_RETURN_IF_ERROR(SetCumulativeKeys(input, "tiers", ranked));
  return ranked;
}

absl::Status RandomPolicy::Validate() const {
  return CheckRange("recent", recent, 1, kMaxPolicyTokens);
}

bool RandomPolicy::IsDue(const EventCounts& counts) const {
  return IsDueOverBudget(counts, recent);
}

int64_t RandomPolicy::AlwaysKept(int64_t /*room*/) const { return recent; }

absl::StatusOr<RankedRows> RandomPolicy::Rank(
    const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  FARKV_RETURN_IF_ERROR(input.Validate());
  RankedRows ranked = StartRanking(input, 0, recent);
  const PolicyDraws draws =
      shared ? input.draws.SharedByLayersAndHeads() : input.draws;
  for (EvictionRow& row : ranked.rows) {
    row.key = static_cast<float>(draws.Unit(row.position));
  }
  return ranked;
}

absl::Status RecencyPolicy::Validate() const {
  return CheckRange("interval", interval, 1, kMaxPolicyTokens);
}

bool RecencyPolicy::IsDue(const EventCounts& counts) const {
  return IsDueOverBudget(counts, interval);
}

int64_t RecencyPolicy::AlwaysKept(int64_t /*room*/) const { return 0; }

absl::StatusOr<RankedRows> RecencyPolicy::Rank(
    const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  FARKV_RETURN_IF_ERROR(input.Validate());
  // Keys are equal, and of equal keys the younger stays.
  return StartRanking(input, 0, 0);
}

}  // namespace farkv
