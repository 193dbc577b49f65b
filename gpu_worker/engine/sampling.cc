#include "gpu_worker/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace farkv {
namespace {

int32_t Greedy(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  return static_cast<int32_t>(best - logits.begin());
}

// Ids by falling logit, cut to the top_k first.
std::vector<int32_t> Candidates(std::span<const float> logits, int32_t top_k) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&logits](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (top_k > 0 && static_cast<size_t>(top_k) < ids.size()) {
    ids.resize(static_cast<size_t>(top_k));
  }
  return ids;
}

}  // namespace

absl::Status SamplingOptions::Validate() const {
  if (!(temperature >= 0.0f && temperature <= 100.0f)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sampling.temperature is ", temperature, ", must lie in [0, 100]"));
  }
  if (!(top_p > 0.0f && top_p <= 1.0f)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_p is ", top_p, ", must lie in (0, 1]"));
  }
  if (top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_k is ", top_k, ", must be at least 0"));
  }
  return absl::OkStatus();
}

int32_t SampleToken(std::span<const float> logits,
                    const SamplingOptions& options, int64_t position) {
  if (options.temperature == 0.0f || options.top_k == 1) return Greedy(logits);
  const std::vector<int32_t> ids = Candidates(logits, options.top_k);
  const double largest = logits[static_cast<size_t>(ids[0])];
  std::vector<double> weights;
  double total = 0.0;
  for (int32_t id : ids) {
    const double logit = logits[static_cast<size_t>(id)];
    weights.push_back(
        std::exp((logit - largest) / static_cast<double>(options.temperature)));
    total += weights.back();
  }
  // The nucleus: the first ids whose probability reaches top_p.
  size_t count = 0;
  double nucleus = 0.0;
  while (count < ids.size() &&
         (count == 0 || nucleus < static_cast<double>(options.top_p) * total)) {
    nucleus += weights[count++];
  }
  double rest = nucleus * ToUnit(CounterDraw(
                              options.seed, {static_cast<uint64_t>(position)}));
  for (size_t i = 0; i + 1 < count; ++i) {
    rest -= weights[i];
    if (rest < 0.0) return ids[i];
  }
  return ids[count - 1];
}

}  // namespace farkv
