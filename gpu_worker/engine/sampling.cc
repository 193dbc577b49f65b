#include "gpu_worker/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

int32_t Greedy(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  return static_cast<int32_t>(best - logits.begin());
}

// Ids by falling logit, of equal logits the lower id first. Sorts no more of
// them than are looked at: a vocabulary has 150,000 and a draw needs a few.
class Ranking {
 public:
  explicit Ranking(std::span<const float> logits)
      : logits_(logits), ids_(logits.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }

  int32_t At(size_t rank) {
    if (rank >= sorted_) SortMore(rank + 1);
    return ids_[rank];
  }

 private:
  void SortMore(size_t needed) {
    const auto before = [this](int32_t a, int32_t b) {
      const float x = logits_[static_cast<size_t>(a)];
      const float y = logits_[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    };
    constexpr size_t kAtOnce = 256;
    const size_t count =
        std::min(ids_.size(), std::max({needed, kAtOnce, 2 * sorted_}));
    const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto end = ids_.begin() + static_cast<std::ptrdiff_t>(count);
    if (end != ids_.end()) std::nth_element(first, end, ids_.end(), before);
    std::sort(first, end, before);
    sorted_ = count;
  }

  const std::span<const float> logits_;
  std::vector<int32_t> ids_;
  size_t sorted_ = 0;  // of ids_, from the front
};

}  // namespace

absl::Status SamplingOptions::Validate(int32_t vocab_size) const {
  FARKV_RETURN_IF_ERROR(
      CheckRange("sampling.temperature", temperature, 0.0f, 100.0f));
  if (!(top_p > 0.0f && top_p <= 1.0f)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_p is ", top_p, ", must lie in (0, 1]"));
  }
  if (top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.top_k is ", top_k, ", must be at least 0"));
  }
  FARKV_RETURN_IF_ERROR(CheckRange("sampling.min_p", min_p, 0.0f, 1.0f));
  // Bounds that keep the logits of any sound model finite.
  FARKV_RETURN_IF_ERROR(CheckRange("sampling.repetition_penalty",
                                   repetition_penalty, 0.01f, 100.0f));
  FARKV_RETURN_IF_ERROR(
      CheckRange("sampling.frequency_penalty", frequency_penalty, -2.0f, 2.0f));
  FARKV_RETURN_IF_ERROR(
      CheckRange("sampling.presence_penalty", presence_penalty, -2.0f, 2.0f));
  if (logit_bias.size() > kMaxLogitBiases) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.logit_bias has ", logit_bias.size(),
                     " items, at most ", kMaxLogitBiases, " allowed"));
  }
  for (const auto& [token, bias] : logit_bias) {
    FARKV_RETURN_IF_ERROR(
        CheckRange("a token of sampling.logit_bias", token, 0, vocab_size - 1));
    FARKV_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("sampling.logit_bias[", token, "]"), bias,
                   -100.0f, 100.0f));
  }
  return absl::OkStatus();
}

bool AllFinite(std::span<const float> logits) {
  return std::all_of(logits.begin(), logits.end(),
                     [](float logit) { return std::isfinite(logit); });
}

int32_t SampleToken(std::span<const float> logits,
                    const SamplingOptions& options, int64_t position) {
  const int32_t best = Greedy(logits);
  if (options.temperature == 0.0f || options.top_k == 1) return best;
  const double largest = logits[static_cast<size_t>(best)];
  const auto weight = [&](int32_t id) {
    const double logit = logits[static_cast<size_t>(id)];
    return std::exp((logit - largest) /
                    static_cast<double>(options.temperature));
  };
  Ranking ranking(logits);
  const bool is_cut =
      options.top_k > 0 && static_cast<size_t>(options.top_k) < logits.size();
  size_t count = is_cut ? static_cast<size_t>(options.top_k) : logits.size();
  double mass = 0.0;
  if (is_cut || options.min_p > 0.0f) {
    const double least = options.min_p;  // the likeliest one weighs 1
    const size_t most = std::exchange(count, 0);
    for (; count < most; ++count) {
      const double next = weight(ranking.At(count));
      if (next < least) break;
      mass += next;
    }
  } else {
    for (size_t i = 0; i < count; ++i) mass += weight(static_cast<int32_t>(i));
  }
  if (options.top_p < 1.0f) {
    // The nucleus: the first ids whose probability reaches top_p.
    const double wanted = static_cast<double>(options.top_p) * mass;
    const size_t most = std::exchange(count, 0);
    mass = 0.0;
    while (count < most && (count == 0 || mass < wanted)) {
      mass += weight(ranking.At(count++));
    }
  }
  // The seed is mixed before the position comes to it: neighbouring seeds are
  // those of one request's outputs, and must not share draws.
  double rest = mass * ToUnit(CounterDraw(
                           options.seed, {0, static_cast<uint64_t>(position)}));
  // Sums are rounded: what is left behind the last one is its own, unless it
  // weighs nothing.
  int32_t last = best;
  for (size_t i = 0; i < count; ++i) {
    const double next = weight(ranking.At(i));
    if (next <= 0.0) break;
    last = ranking.At(i);
    rest -= next;
    if (rest < 0.0) break;
  }
  return last;
}

}  // namespace farkv
