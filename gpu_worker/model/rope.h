// Rotary position embeddings (arXiv 2104.09864) and their scaling variants, as
// frequencies per pair of a head. Plain values; any thread.
#ifndef FARKV_GPU_WORKER_MODEL_ROPE_H_
#define FARKV_GPU_WORKER_MODEL_ROPE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace farkv {

// The most positions that a model file may name.
inline constexpr int32_t kMaxPositions = 1 << 30;

struct RopeScaling {
  enum class Kind : uint8_t {
    kNone,
    kLinear,   // every frequency divided by `factor` (arXiv 2306.15595)
    kDynamic,  // NTK-aware: the base grows with the length of the sequence
    kYarn,     // arXiv 2309.00071
    kLlama3,   // Llama 3.1: long waves divided by `factor`, short ones kept
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;                // at least 1
  int32_t original_max_position = 0;  // tokens before scaling; not kLinear
  // kYarn. Dimensions that turn more than beta_fast times within
  // original_max_position keep their frequency, those that turn less than
  // beta_slow times are divided by `factor`, between them it is mixed.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;           // whole dimensions as bounds
  double attention_factor = 1.0;  // multiplies rotated queries and keys
  // kLlama3. Waves longer than original_max_position / low_freq_factor are
  // long, those shorter than original_max_position / high_freq_factor short.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // Each frequency is divided by its own number, after the rest; empty for
  // none. For files that carry a table of divisors (GGUF's rope_freqs).
  std::vector<float> divisors;

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;

  // INVALID_ARGUMENT naming the field and its value.
  absl::Status Validate(int32_t head_dim) const;
  // Tokens that a model of `stated_max_position` reaches with this scaling.
  int32_t MaxPosition(int32_t stated_max_position) const;
};

// The factor of arXiv 2309.00071 for a context stretched `factor` times.
double YarnAttentionFactor(double factor, double mscale = 1.0);

// Radians per position of each pair of a head, [head_dim / 2], for the row
// whose sequence has `num_tokens` tokens with it. Only kDynamic depends on
// num_tokens, from original_max_position on.
std::vector<double> RopeFrequencies(double theta, int32_t head_dim,
                                    const RopeScaling& scaling,
                                    int64_t num_tokens);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_ROPE_H_
