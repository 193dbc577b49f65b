#include "gpu_worker/engine/sampling_penalties.h"

#include <limits>

#include "absl/container/flat_hash_set.h"

namespace farkv {

LogitEdits::LogitEdits(const SamplingOptions& options,
                       std::span<const int32_t> prompt)
    : has_penalties_(options.repetition_penalty != 1.0f ||
                     options.frequency_penalty != 0.0f ||
                     options.presence_penalty != 0.0f) {
  if (options.repetition_penalty == 1.0f) return;
  for (const int32_t token : prompt) output_counts_.try_emplace(token, 0);
}

void LogitEdits::AddOutput(int32_t token) {
  if (has_penalties_) ++output_counts_[token];
}

void LogitEdits::Apply(const SamplingOptions& options,
                       std::span<const int32_t> ruled_out,
                       std::span<float> logits) const {
  for (const auto& [token, bias] : options.logit_bias) {
    logits[static_cast<size_t>(token)] += bias;
  }
  const absl::flat_hash_set<int32_t> out(ruled_out.begin(), ruled_out.end());
  if (out.size() < logits.size()) {
    for (const int32_t token : out) {
      logits[static_cast<size_t>(token)] =
          -std::numeric_limits<float>::infinity();
    }
  }
  // Each token is changed for itself: the map's order does not show.
  for (const auto& [token, count] : output_counts_) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0.0f ? logit / options.repetition_penalty
                         : logit * options.repetition_penalty;
    if (count == 0) continue;
    logit -= options.frequency_penalty * static_cast<float>(count);
    logit -= options.presence_penalty;
  }
}

}  // namespace farkv
