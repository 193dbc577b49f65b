// Choosing the next token from logits. Pure: the draw is a function of seed
// and position (counter-based), so it does not depend on batch or machine.
//
// What a request asks for is done in this order, which is vLLM's (1 to 3 are in
// sampling_penalties.h):
//   1. logit_bias is added;
//   2. end and stop tokens are ruled out before min_new_tokens;
//   3. repetition penalty (prompt and output), then frequency and presence
//      penalty (output);
//   4. without a temperature the largest logit wins; else
//   5. the logits are divided by the temperature;
//   6. min_p, 7. top_k and 8. top_p cut the tail, each of what is left;
//   9. one of the rest is drawn.
#ifndef FARKV_GPU_WORKER_ENGINE_SAMPLING_H_
#define FARKV_GPU_WORKER_ENGINE_SAMPLING_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace farkv {

inline constexpr size_t kMaxLogitBiases = 1024;

struct SamplingOptions {
  float temperature = 0.0f;  // 0: greedy
  float top_p = 1.0f;        // smallest set with at least this probability
  int32_t top_k = 0;         // 0: all
  uint64_t seed = 0;
  // Drops tokens with less than this share of the likeliest one's probability.
  float min_p = 0.0f;
  // Of tokens in prompt or output: positive logits are divided by it, negative
  // ones multiplied.
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;  // subtracted for each time in the output
  float presence_penalty = 0.0f;   // subtracted once for those in the output
  // Token and what is added to its logit; each token once.
  std::vector<std::pair<int32_t, float>> logit_bias;

  // INVALID_ARGUMENT naming field, value and range; NaN is out of range.
  absl::Status Validate(int32_t vocab_size) const;
};

// Whether every logit is a number: damaged weights and overflows give others,
// among which nothing can be chosen.
bool AllFinite(std::span<const float> logits);

// The logits must be finite, but for those of tokens that are ruled out
// (-infinity, never all). `position` is the absolute position that the new
// token will have. Among equal logits the lowest id comes first.
int32_t SampleToken(std::span<const float> logits,
                    const SamplingOptions& options, int64_t position);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_SAMPLING_H_
