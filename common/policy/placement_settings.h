// Settings of placement: which tokens stay in T0, and when that is decided.
// ALGORITHMS 1.1 to 1.4, DESIGN 5.2 and 5.4. Plain values; thread-compatible.
//
// Ratios are integers per 10,000, so that floor(ratio * n) is one integer
// division and every machine agrees on it.
#ifndef FARKV_COMMON_POLICY_PLACEMENT_SETTINGS_H_
#define FARKV_COMMON_POLICY_PLACEMENT_SETTINGS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farkv {

inline constexpr int32_t kRatioOne = 10000;

// floor(ratio * count), ratio per 10,000.
constexpr int64_t ShareOf(int32_t ratio, int64_t count) {
  return count * ratio / kRatioOne;
}

enum class PlacementPolicy : uint8_t {
  kCumulativeAttention,  // the Tiers paper
  kAgeNormalised,        // the same per query that could see the token
  kRecency,              // the youngest
  kRandom,               // a fresh counter-based draw per event and group
};

// "attention", "age-normalised", "recency", "random", as --placement takes.
const char* PlacementPolicyName(PlacementPolicy policy);
absl::StatusOr<PlacementPolicy> ParsePlacementPolicy(absl::string_view name);

struct PlacementSettings {
  PlacementPolicy policy = PlacementPolicy::kCumulativeAttention;
  // Tokens that move together, the positions of a T0 line: 64, 16 or 1.
  int32_t granularity = 64;
  // Generated tokens between two events.
  int64_t interval = 64;
  // Protected: the first generated tokens and the youngest tokens.
  int64_t sinks = 4;
  int64_t recent = 128;
  // The prompt is protected too; false is --prompt-placement=any.
  bool prompt_in_t0 = true;
  // Share of the unprotected live tokens kept in T0, per 10,000.
  int32_t hbm_ratio = 5000;
  // A cold group displaces one in T0 only if its score is higher by more than
  // this, in the scores' fixed point (2^-40). With 0 a plan does not depend
  // on the tiers before it. The policies without scores ignore it.
  int64_t hysteresis = 0;
  uint64_t seed = 0;  // of kRandom

  // INVALID_ARGUMENT naming the field, its value and the allowed range.
  absl::Status Validate() const;
  // The same for what a plan needs: any granularity that divides a page.
  absl::Status ValidateForPlan() const;
};

// Whether an event takes place when `generated` tokens have been generated:
// every interval, once more than sinks + recent are there (ALGORITHMS 1.2; 192
// first, by default).
bool ShouldPlan(const PlacementSettings& settings, int64_t generated);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_PLACEMENT_SETTINGS_H_
