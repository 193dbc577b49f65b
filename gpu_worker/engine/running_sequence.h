// A sequence that the engine has admitted, and the step-by-step bookkeeping of
// its tokens. Thread-compatible; the engine's thread owns it.
#ifndef FARKV_GPU_WORKER_ENGINE_RUNNING_SEQUENCE_H_
#define FARKV_GPU_WORKER_ENGINE_RUNNING_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu_worker/engine/generation.h"
#include "gpu_worker/engine/output_text.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

class RunningSequence {
 public:
  RunningSequence(GenerationRequest request,
                  std::shared_ptr<GenerationStream> stream, SessionId session,
                  absl::Time admitted);

  // Tokens known but not yet processed: the rest of the prompt, or the token
  // chosen last. At least one while the sequence runs.
  std::span<const int32_t> pending() const {
    return std::span<const int32_t>(tokens_).subspan(
        static_cast<size_t>(processed_));
  }
  int64_t processed() const { return processed_; }
  bool prefilling() const {
    return processed_ < static_cast<int64_t>(request_.prompt.size());
  }

  // Tokens that the next step may process: the first of those that were lost,
  // else pending ones. Behind the prompt a replay goes on by `replay_rows` at
  // most, and stops where a placement plan is due. One with `one_row` goes on
  // by one.
  int64_t next_rows() const;
  // So many tokens have been processed; how many not for the first time.
  int64_t Advance(int64_t rows);

  // All rows are lost: its tokens are processed again, under another session.
  // What was chosen and sent stays.
  void Replay(SessionId session);
  // The rows of these positions are lost, ascending and all processed before:
  // their tokens come first, and in place of those that were lost before.
  void Recompute(std::vector<int64_t> lost);
  // Positions that are still to be computed again.
  std::span<const int64_t> lost() const {
    return std::span<const int64_t>(lost_).subspan(next_lost_);
  }
  // Takes fewer of them at a time, for want of T0. False when it is one.
  bool HalveLostRows();
  int32_t token(int64_t position) const {
    return tokens_[static_cast<size_t>(position)];
  }
  bool replaying() const { return processed_ < replay_end_ || !lost().empty(); }
  int recoveries() const { return recoveries_; }
  int64_t recomputed() const { return recomputed_; }

  // Chooses the next token from the logits behind the last known one, sends
  // it, and returns the end if it is the last.
  std::optional<GenerationEnd> Accept(std::span<const float> logits,
                                      const Tokenizer& tokenizer,
                                      std::span<const int32_t> eos_tokens);
  // Text still held back; for the end.
  std::string FlushText() { return text_.Flush(); }
  GenerationEnd MakeEnd(FinishReason reason) const;

  const GenerationRequest& request() const { return request_; }
  GenerationStream& stream() const { return *stream_; }
  SessionId session() const { return session_; }
  absl::Time admitted() const { return admitted_; }
  int64_t generated() const {
    return static_cast<int64_t>(tokens_.size() - request_.prompt.size());
  }

  SequenceId id;            // in the KV cache
  int64_t replay_rows = 1;  // see next_rows()
  bool parked = false;      // waits for T0
  // Its cold rows are too many to be fetched: nodes attend to them, which they
  // do for one row of a sequence at a time. Until it is replayed.
  bool one_row = false;
  bool ended = false;  // to be removed
  absl::Time last_token;

 private:
  bool forced_next() const {
    const auto index = static_cast<size_t>(generated());
    return index < request_.forced.size() &&
           request_.forced[index] != kFreeToken;
  }
  static constexpr int64_t kMaxLostRows = int64_t{1} << 20;

  bool IsStop(int32_t token, std::span<const int32_t> eos_tokens) const;

  GenerationRequest request_;
  std::shared_ptr<GenerationStream> stream_;
  SessionId session_;
  absl::Time admitted_;
  std::vector<int32_t> tokens_;  // prompt, then generated
  int64_t processed_ = 0;
  int64_t replay_end_ = 0;  // tokens that were processed before
  std::vector<int64_t> lost_;
  size_t next_lost_ = 0;
  int64_t lost_rows_ = kMaxLostRows;  // at a time
  int64_t recomputed_ = 0;
  int recoveries_ = 0;
  OutputText text_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_RUNNING_SEQUENCE_H_
