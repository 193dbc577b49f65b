#include "common/policy/placement_settings.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/layout/kv_geometry.h"
#include "common/policy/limits.h"

namespace farkv {
namespace {

constexpr PlacementPolicy kPolicies[] = {
    PlacementPolicy::kCumulativeAttention, PlacementPolicy::kAgeNormalised,
    PlacementPolicy::kRecency, PlacementPolicy::kRandom};

}  // namespace

const char* PlacementPolicyName(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kCumulativeAttention:
      return "attention";
    case PlacementPolicy::kAgeNormalised:
      return "age-normalised";
    case PlacementPolicy::kRecency:
      return "recency";
    case PlacementPolicy::kRandom:
      return "random";
  }
  return "unknown";
}

absl::StatusOr<PlacementPolicy> ParsePlacementPolicy(absl::string_view name) {
  for (PlacementPolicy policy : kPolicies) {
    if (name == PlacementPolicyName(policy)) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("placement is \"", name,
                   "\", must be attention, age-normalised, recency or random"));
}

absl::Status PlacementSettings::Validate() const {
  if (granularity != 1 && granularity != 16 && granularity != 64) {
    return absl::InvalidArgumentError(
        absl::StrCat("granularity is ", granularity, ", must be 64, 16 or 1"));
  }
  return ValidateForPlan();
}

absl::Status PlacementSettings::ValidateForPlan() const {
  if (granularity < 1 || kPageTokens % granularity != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "granularity is ", granularity, ", must divide ", kPageTokens));
  }
  FARKV_RETURN_IF_ERROR(CheckRange("interval", interval, 1, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("sinks", sinks, 0, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("recent", recent, 0, kMaxPolicyTokens));
  FARKV_RETURN_IF_ERROR(CheckRange("hbm_ratio", hbm_ratio, 0, kRatioOne));
  return CheckRange("hysteresis", hysteresis, 0, int64_t{1} << 62);
}

bool ShouldPlan(const PlacementSettings& settings, int64_t generated) {
  return generated % settings.interval == 0 &&
         generated > settings.sinks + settings.recent;
}

}  // namespace farkv
