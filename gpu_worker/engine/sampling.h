// Choosing the next token from logits. Pure: the draw is a function of seed
// and position (counter-based), so it does not depend on batch or machine.
#ifndef FARKV_GPU_WORKER_ENGINE_SAMPLING_H_
#define FARKV_GPU_WORKER_ENGINE_SAMPLING_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace farkv {

struct SamplingOptions {
  float temperature = 0.0f;  // 0: greedy
  float top_p = 1.0f;        // smallest set with at least this probability
  int32_t top_k = 0;         // 0: all
  uint64_t seed = 0;

  // INVALID_ARGUMENT naming field, value and range; NaN is out of range.
  absl::Status Validate() const;
};

// Whether every logit is a number: damaged weights and overflows give others,
// among which nothing can be chosen.
bool AllFinite(std::span<const float> logits);

// The logits must be finite. `position` is the absolute position that the new
// token will have. Among equal logits the lowest id comes first.
int32_t SampleToken(std::span<const float> logits,
                    const SamplingOptions& options, int64_t position);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_SAMPLING_H_
