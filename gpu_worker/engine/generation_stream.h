// What comes of one request, between the engine (writer) and one reader. Events
// that were not taken yet merge, so a slow reader costs at most the request's
// own outputs. Thread-safe.
#ifndef FARKV_GPU_WORKER_ENGINE_GENERATION_STREAM_H_
#define FARKV_GPU_WORKER_ENGINE_GENERATION_STREAM_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gpu_worker/engine/generation.h"
#include "gpu_worker/engine/logprobs.h"

namespace farkv {

// What is new of one output since the last Take.
struct GenerationEvent {
  int32_t output = 0;
  // Of the prompt's next tokens; before the first token.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs;  // one for each token, or none
  std::optional<GenerationEnd> end;

  bool empty() const {
    return prompt_logprobs.empty() && text.empty() && tokens.empty() && !end;
  }
};

class GenerationStream {
 public:
  explicit GenerationStream(std::string request_id, int32_t num_outputs = 1);

  const std::string& request_id() const { return request_id_; }
  int32_t num_outputs() const { return static_cast<int32_t>(states_.size()); }

  // Reader. `notify` runs after each change, no lock held, on the engine's
  // thread; at once when something is there already.
  void SetNotify(std::function<void()> notify);
  // The outputs take turns. With log probabilities an event carries those of
  // 512 tokens at most, and its end comes behind them all.
  GenerationEvent Take();
  // Blocks until there is something to take.
  GenerationEvent WaitAndTake();
  // The engine ends the request at its next step.
  void Cancel();

  // Engine.
  void AppendPrompt(int32_t output, std::vector<TokenLogprobs> logprobs);
  void Append(int32_t output, const std::string& text, int32_t token,
              std::optional<TokenLogprobs> logprobs = std::nullopt);
  void Finish(int32_t output, const std::string& text, GenerationEnd end);
  // All outputs that have not ended.
  void FinishAll(const GenerationEnd& end);
  bool cancelled() const;
  int32_t outputs_left() const;  // that have not ended

 private:
  struct OutputState {
    GenerationEvent pending;
    bool ended = false;
  };

  bool HasPending() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  GenerationEvent TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Changes the pending event of `output` and tells the reader.
  template <typename Change>
  void Add(int32_t output, Change change);
  void Notify();

  const std::string request_id_;
  mutable absl::Mutex mutex_;
  std::vector<OutputState> states_;  // its size is fixed, the rest guarded
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // whose turn it is
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> notify_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_GENERATION_STREAM_H_
