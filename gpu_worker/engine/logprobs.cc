#include "gpu_worker/engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace farkv {

TokenLogprobs LogprobsOf(std::span<const float> logits, int32_t chosen,
                         int32_t top) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - largest);
  }
  const double whole = std::log(sum);  // beside the largest, which may be huge
  const auto entry = [&](int32_t token) {
    const double logit = logits[static_cast<size_t>(token)];
    return TokenLogprob{token, static_cast<float>(logit - largest - whole)};
  };
  TokenLogprobs result;
  result.chosen = entry(chosen);
  if (top <= 0) return result;
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min(static_cast<std::ptrdiff_t>(top),
                              static_cast<std::ptrdiff_t>(ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x > y || (x == y && a < b);
                    });
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    result.top.push_back(entry(ids[static_cast<size_t>(i)]));
  }
  return result;
}

}  // namespace farkv
