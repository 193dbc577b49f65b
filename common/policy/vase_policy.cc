#include "common/policy/vase_policy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/logarithm.h"
#include "common/policy/panel_math.h"

namespace farkv {

double SamplingKey(float weight, double unit) {
  if (weight == 0) return EvictionRow::kLastKey;
  return static_cast<float>(NaturalLog(weight) - NaturalLog(-NaturalLog(unit)));
}

absl::Status VaseAttnVPolicy::Validate() const {
  FARKV_RETURN_IF_ERROR(CheckRange("sinks", sinks, 0, int64_t{1} << 32));
  FARKV_RETURN_IF_ERROR(
      CheckRange("value_tokens", value_tokens, kQuarter, int64_t{1} << 32));
  return window.Validate();
}

bool VaseAttnVPolicy::IsDue(const EventCounts& counts) const {
  return IsDueByBuffer(counts, window.window);
}

int64_t VaseAttnVPolicy::AlwaysKept(int64_t /*room*/) const {
  return sinks + window.window;
}

absl::StatusOr<RankedRows> VaseAttnVPolicy::Rank(
    const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  FARKV_RETURN_IF_ERROR(RequireValues(input, "vase-attn-v"));
  FARKV_ASSIGN_OR_RETURN(const std::vector<float> mass,
                         CandidateMass(input, window, "vase-attn-v"));
  RankedRows ranked = StartRanking(input, sinks, window.window);
  const std::vector<float> ranges = Ranges(MakePanels(input.values));
  for (size_t i = 0; i < mass.size(); ++i) {
    EvictionRow& row = ranked.rows[i];
    row.measure = ranges[i];
    row.key = SamplingKey(mass[i], input.draws.Unit(row.position));
  }
  ranked.num_by_measure = NumByMeasure(input);
  return ranked;
}

int64_t VaseAttnVPolicy::NumByMeasure(const EvictionInput& input) const {
  const auto end = input.positions.begin() + input.NumOlder(window.window);
  const int64_t num_sinks =
      std::lower_bound(input.positions.begin(), end, sinks) -
      input.positions.begin();
  const int64_t wanted =
      value_tokens == kQuarter ? input.num_kept / 4 : value_tokens;
  return std::max<int64_t>(0, wanted - num_sinks);
}

absl::Status VaseDkvPolicy::Validate() const {
  return CurDkvPolicy{buffer, sinks, rank}.Validate();
}

bool VaseDkvPolicy::IsDue(const EventCounts& counts) const {
  return IsDueByBuffer(counts, buffer);
}

int64_t VaseDkvPolicy::AlwaysKept(int64_t /*room*/) const {
  return sinks + buffer;
}

absl::StatusOr<RankedRows> VaseDkvPolicy::Rank(
    const EvictionInput& input) const {
  return RankByProjection({buffer, sinks, rank}, input, input.draws);
}

}  // namespace farkv
