#include "gpu_worker/engine/generation_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace farkv {
namespace {

// Twenty entries each make 100 KB: a message stays far below gRPC's 4 MB.
constexpr size_t kMaxLogprobs = 512;

template <typename T>
std::vector<T> TakeFront(std::vector<T>& from, size_t most) {
  if (from.size() <= most) return std::exchange(from, {});
  const auto end = from.begin() + static_cast<std::ptrdiff_t>(most);
  std::vector<T> front(std::make_move_iterator(from.begin()),
                       std::make_move_iterator(end));
  from.erase(from.begin(), end);
  return front;
}

}  // namespace

GenerationStream::GenerationStream(std::string request_id, int32_t num_outputs)
    : request_id_(std::move(request_id)),
      states_(static_cast<size_t>(num_outputs)) {
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].pending.output = static_cast<int32_t>(i);
  }
}

bool GenerationStream::HasPending() const {
  return std::any_of(states_.begin(), states_.end(),
                     [](const auto& state) { return !state.pending.empty(); });
}

void GenerationStream::SetNotify(std::function<void()> notify) {
  bool waiting = false;
  {
    absl::MutexLock lock(&mutex_);
    notify_ = notify;
    waiting = HasPending();
  }
  if (waiting && notify) notify();
}

GenerationEvent GenerationStream::TakeNext() {
  for (size_t i = 0; i < states_.size(); ++i) {
    GenerationEvent& pending = states_[next_].pending;
    next_ = (next_ + 1) % states_.size();
    if (pending.empty()) continue;
    GenerationEvent event;
    event.output = pending.output;
    event.prompt_logprobs = TakeFront(pending.prompt_logprobs, kMaxLogprobs);
    if (!pending.prompt_logprobs.empty()) return event;
    event.text = std::exchange(pending.text, {});
    const bool all = pending.logprobs.empty();
    event.tokens =
        TakeFront(pending.tokens, all ? pending.tokens.size() : kMaxLogprobs);
    event.logprobs = TakeFront(pending.logprobs, kMaxLogprobs);
    if (pending.tokens.empty()) event.end = std::exchange(pending.end, {});
    return event;
  }
  return {};
}

GenerationEvent GenerationStream::Take() {
  absl::MutexLock lock(&mutex_);
  return TakeNext();
}

GenerationEvent GenerationStream::WaitAndTake() {
  absl::MutexLock lock(&mutex_);
  auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return HasPending();
  };
  mutex_.Await(absl::Condition(&ready));
  return TakeNext();
}

void GenerationStream::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
}

bool GenerationStream::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

int32_t GenerationStream::outputs_left() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int32_t>(
      std::count_if(states_.begin(), states_.end(),
                    [](const auto& state) { return !state.ended; }));
}

template <typename Change>
void GenerationStream::Add(int32_t output, Change change) {
  {
    absl::MutexLock lock(&mutex_);
    change(states_[static_cast<size_t>(output)]);
  }
  Notify();
}

void GenerationStream::AppendPrompt(int32_t output,
                                    std::vector<TokenLogprobs> logprobs) {
  Add(output, [&](OutputState& state) {
    auto& pending = state.pending.prompt_logprobs;
    std::move(logprobs.begin(), logprobs.end(), std::back_inserter(pending));
  });
}

void GenerationStream::Append(int32_t output, const std::string& text,
                              int32_t token,
                              std::optional<TokenLogprobs> logprobs) {
  Add(output, [&](OutputState& state) {
    state.pending.text += text;
    state.pending.tokens.push_back(token);
    if (logprobs) state.pending.logprobs.push_back(*std::move(logprobs));
  });
}

void GenerationStream::Finish(int32_t output, const std::string& text,
                              GenerationEnd end) {
  Add(output, [&](OutputState& state) {
    state.pending.text += text;
    state.pending.end = std::move(end);
    state.ended = true;
  });
}

void GenerationStream::FinishAll(const GenerationEnd& end) {
  for (int32_t output = 0; output < num_outputs(); ++output) {
    Add(output, [&](OutputState& state) {
      if (std::exchange(state.ended, true)) return;
      state.pending.end = end;
    });
  }
}

void GenerationStream::Notify() {
  std::function<void()> notify;
  {
    absl::MutexLock lock(&mutex_);
    notify = notify_;
  }
  if (notify) notify();
}

}  // namespace farkv
