// One request for generation and the stream of what comes of it.
#ifndef FARKV_GPU_WORKER_ENGINE_GENERATION_H_
#define FARKV_GPU_WORKER_ENGINE_GENERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gpu_worker/engine/sampling.h"
#include "gpu_worker/tiering/kv_cache.h"

namespace farkv {

// The longest prompt, forced text and output that a request may ask for.
inline constexpr int64_t kMaxRequestTokens = int64_t{1} << 20;
inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 256;
inline constexpr size_t kMaxStopTokens = 1024;
inline constexpr size_t kMaxRequestIdBytes = 256;

// In GenerationRequest::forced: this one is chosen as any other.
inline constexpr int32_t kFreeToken = -1;

struct GenerationRequest {
  std::string request_id;  // empty: the engine makes one
  std::vector<int32_t> prompt;
  SamplingOptions sampling;
  int64_t max_new_tokens = 256;
  int64_t min_new_tokens = 0;  // end and stop tokens are ignored before it
  std::vector<std::string> stop_texts;
  std::vector<int32_t> stop_tokens;
  bool ignore_eos = false;
  bool include_stop = false;
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
  uint64_t seed = 0;
  SequenceTierStats tiers;
};

// What is new since the last Take.
struct GenerationEvent {
  std::string text;
  std::vector<int32_t> tokens;
  std::optional<GenerationEnd> end;

  bool empty() const { return text.empty() && tokens.empty() && !end; }
};

// Between the engine (writer) and one reader. Events that were not taken yet
// merge, so a slow reader costs at most the request's own output. Thread-safe.
class GenerationStream {
 public:
  explicit GenerationStream(std::string request_id)
      : request_id_(std::move(request_id)) {}

  const std::string& request_id() const { return request_id_; }

  // Reader. `notify` runs after each change, no lock held, on the engine's
  // thread; at once when something is there already.
  void SetNotify(std::function<void()> notify);
  GenerationEvent Take();
  // Blocks until there is something to take.
  GenerationEvent WaitAndTake();
  // The engine ends the request at its next step.
  void Cancel();

  // Engine.
  void Append(const std::string& text, int32_t token);
  void Finish(const std::string& text, GenerationEnd end);
  bool cancelled() const;

 private:
  void Notify();

  const std::string request_id_;
  mutable absl::Mutex mutex_;
  GenerationEvent pending_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> notify_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_GENERATION_H_
