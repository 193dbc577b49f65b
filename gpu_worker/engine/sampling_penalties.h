// What a request changes of the logits before a token is drawn: bias, tokens
// ruled out, penalties. See sampling.h for the order.
//
// A function of the options, the prompt and the output before the token, each
// token for itself in f32: the bits do not depend on the batch, nor on whether
// the output was chosen, forced or processed again. Thread-compatible.
#ifndef FARKV_GPU_WORKER_ENGINE_SAMPLING_PENALTIES_H_
#define FARKV_GPU_WORKER_ENGINE_SAMPLING_PENALTIES_H_

#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "gpu_worker/engine/sampling.h"

namespace farkv {

class LogitEdits {
 public:
  // All tokens must lie in the vocabulary that Apply is given.
  LogitEdits(const SamplingOptions& options, std::span<const int32_t> prompt);

  // A token has joined the output.
  void AddOutput(int32_t token);

  // Changes `logits` ([vocabulary], finite) in place. Tokens of `ruled_out`
  // get -infinity, unless none would be left.
  void Apply(const SamplingOptions& options, std::span<const int32_t> ruled_out,
             std::span<float> logits) const;

 private:
  bool has_penalties_ = false;
  // How often each token of prompt or output is in the output.
  absl::flat_hash_map<int32_t, int32_t> output_counts_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_SAMPLING_PENALTIES_H_
