#include "common/policy/snap_kv_policy.h"

#include <vector>

#include "common/base/check_range.h"
#include "common/base/status_macros.h"

namespace farkv {

SnapKvPolicy SnapKvPolicy::Prompt() { return SnapKvPolicy{}; }

SnapKvPolicy SnapKvPolicy::Rkv() {
  return {.window = {WindowScorer::kGroupMax, 8, 7}};
}

SnapKvPolicy SnapKvPolicy::Vase() {
  return {.window = {WindowScorer::kCandidateMean, 64, 5}};
}

absl::Status SnapKvPolicy::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("interval", interval, 1, int64_t{1} << 32));
  return window.Validate();
}

bool SnapKvPolicy::IsDue(const EventCounts& counts) const {
  switch (window.scorer) {
    case WindowScorer::kCausalMean:
      return counts.generated == 0 && counts.cached > counts.budget;
    case WindowScorer::kCandidateMean:
      return IsDueByBuffer(counts, window.window);
    case WindowScorer::kGroupMax:
      return IsDueByInterval(counts, interval);
  }
  return false;
}

int64_t SnapKvPolicy::AlwaysKept(int64_t /*room*/) const {
  return window.window;
}

absl::StatusOr<RankedRows> SnapKvPolicy::Rank(
    const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  FARKV_ASSIGN_OR_RETURN(const std::vector<float> mass,
                         CandidateMass(input, window, "snap-kv"));
  RankedRows ranked = StartRanking(input, 0, window.window);
  for (size_t i = 0; i < mass.size(); ++i) ranked.rows[i].key = mass[i];
  return ranked;
}

}  // namespace farkv
