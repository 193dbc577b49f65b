#include "common/policy/h2o_policy.h"

#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/cumulative_keys.h"
#include "common/policy/ranking.h"

namespace farkv {

absl::Status H2oPolicy::Validate() const {
  return CheckRange("recent", recent, kHalf, int64_t{1} << 32);
}

bool H2oPolicy::IsDue(const EventCounts& counts) const {
  return counts.cached > counts.budget;
}

int64_t H2oPolicy::AlwaysKept(int64_t room) const {
  return recent == kHalf ? room / 2 : recent;
}

absl::StatusOr<RankedRows> H2oPolicy::Rank(const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  RankedRows ranked = StartRanking(input, 0, AlwaysKept(input.num_kept));
  FARKV_RETURN_IF_ERROR(SetCumulativeKeys(input, "h2o", ranked));
  return ranked;
}

}  // namespace farkv
