// One request for generation and how an output of it ends. Plain values.
#ifndef FARKV_GPU_WORKER_ENGINE_GENERATION_H_
#define FARKV_GPU_WORKER_ENGINE_GENERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gpu_worker/engine/logprobs.h"
#include "gpu_worker/engine/sampling.h"
#include "gpu_worker/tiering/kv_cache.h"

namespace farkv {

// The longest prompt, forced text and output that a request may ask for.
inline constexpr int64_t kMaxRequestTokens = int64_t{1} << 20;
inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 256;
inline constexpr size_t kMaxStopTokens = 1024;
inline constexpr size_t kMaxRequestIdBytes = 256;
inline constexpr int32_t kMaxOutputs = 16;

// In GenerationRequest::forced: this one is chosen as any other.
inline constexpr int32_t kFreeToken = -1;

struct GenerationRequest {
  std::string request_id;  // empty: the engine makes one
  std::vector<int32_t> prompt;
  SamplingOptions sampling;
  // Output i has the tokens of a request of its own with seed + i. They run
  // side by side, or wait until all can.
  int32_t num_outputs = 1;
  int64_t max_new_tokens = 256;
  // Before it no end or stop token is chosen, and no stop text looked for.
  int64_t min_new_tokens = 0;
  std::vector<std::string> stop_texts;
  std::vector<int32_t> stop_tokens;
  bool ignore_eos = false;
  bool include_stop = false;
  // Log probabilities of the output, and of the prompt (with output 0), with so
  // many of the most likely tokens.
  bool logprobs = false;
  bool prompt_logprobs = false;
  int32_t top_logprobs = 0;
  // Processed as if they had been generated, kFreeToken left out; all count
  // into max_new_tokens.
  std::vector<int32_t> forced;
  std::optional<int32_t> hbm_ratio;  // 1/10,000; default: the worker's
  // What decides which tokens stay in T0, and the share of the others that
  // nodes keep as T2 (1/10,000, the worker's at most); default: the worker's.
  std::optional<PlacementPolicy> placement;
  std::optional<int32_t> t2_ratio;
  // What may destroy rows of this request; default: what the worker's options
  // say. Its draws follow the request id and the seed of `sampling`.
  std::optional<DestructionSettings> destruction;
  bool destroy_nothing = false;  // whatever the worker's options say
  // Which rows its decode steps read; default: what the worker's options say.
  std::optional<SelectionSettings> selection;
  absl::Time deadline = absl::InfiniteFuture();

  // INVALID_ARGUMENT naming field, value and range.
  absl::Status Validate(int32_t vocab_size, int64_t max_position) const;
};

enum class FinishReason { kStop, kLength, kCancelled, kDeadline, kError };

struct GenerationEnd {
  FinishReason reason = FinishReason::kLength;
  absl::Status error;  // kError
  std::optional<std::string> stop_text;
  std::optional<int32_t> stop_token;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;  // of these, between the marks of a thought
  uint64_t seed = 0;
  SequenceTierStats tiers;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_GENERATION_H_
