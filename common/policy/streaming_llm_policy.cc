#include "common/policy/streaming_llm_policy.h"

#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/policy/ranking.h"
#include "common/policy/rotation.h"

namespace farkv {

absl::Status StreamingLlmPolicy::Validate() const {
  return CheckRange("sinks", sinks, 0, int64_t{1} << 32);
}

bool StreamingLlmPolicy::IsDue(const EventCounts& counts) const {
  return counts.cached > counts.budget;
}

int64_t StreamingLlmPolicy::AlwaysKept(int64_t /*room*/) const { return sinks; }

absl::StatusOr<RankedRows> StreamingLlmPolicy::Rank(
    const EvictionInput& input) const {
  FARKV_RETURN_IF_ERROR(Validate());
  FARKV_RETURN_IF_ERROR(input.Validate());
  // Keys are equal, and of equal keys the younger stays.
  return StartRanking(input, sinks, 0);
}

std::vector<int64_t> CompactDeltas(std::span<const int64_t> kept) {
  std::vector<int64_t> deltas;
  deltas.reserve(kept.size());
  for (size_t j = 0; j < kept.size(); ++j) {
    deltas.push_back(static_cast<int64_t>(j) - kept[j]);
  }
  return deltas;
}

void RotateKey(std::span<float> key, int64_t delta,
               std::span<const double> inverse_frequencies) {
  const size_t half = inverse_frequencies.size();
  for (size_t c = 0; c < half; ++c) {
    const auto [sine, cosine] =
        SineAndCosine(static_cast<double>(delta) * inverse_frequencies[c]);
    const double x = key[c];
    const double y = key[c + half];
    key[c] = static_cast<float>(x * cosine - y * sine);
    key[c + half] = static_cast<float>(x * sine + y * cosine);
  }
}

}  // namespace farkv
