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

#include "gpu_worker/engine/generation_stream.h"
#include "gpu_worker/engine/output_text.h"
#include "gpu_worker/engine/sampling_penalties.h"
#include "gpu_worker/engine/thoughts.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

class RunningSequence {
 public:
  // Of output `output` of `stream`, with that output's own seed in `request`.
  RunningSequence(GenerationRequest request, int32_t output,
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
  // Of the next `rows` rows, the last so many are wanted with their logits:
  // for the log probabilities of the prompt, and to choose a token.
  int64_t logit_rows(int64_t rows) const;
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

  // Sends the log probabilities of the prompt that `logits` give, those of the
  // `rows` rows that were processed last, [rows][vocabulary].
  void ReportPrompt(std::span<const float> logits, int64_t rows);
  // Chooses the next token from the logits behind the last known one, which it
  // edits, sends it, and returns the end if it is the last.
  std::optional<GenerationEnd> Accept(std::span<float> logits,
                                      const Tokenizer& tokenizer,
                                      std::span<const int32_t> eos_tokens);
  // Text still held back; for the end.
  std::string FlushText() { return text_.Flush(); }
  GenerationEnd MakeEnd(FinishReason reason) const;

  // What a thought starts and ends with; before the first token.
  void SetThoughts(const std::optional<ThoughtMarks>& marks) {
    thoughts_ = ThoughtCounter(marks, request_.prompt);
  }
  const GenerationRequest& request() const { return request_; }
  int32_t output() const { return output_; }
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

  int32_t Choose(std::span<float> logits, std::span<const int32_t> eos_tokens);
  std::vector<int32_t> StopTokens(std::span<const int32_t> eos_tokens) const;
  bool reports_prompt() const {
    return request_.prompt_logprobs && output_ == 0;
  }
  bool IsStop(int32_t token, std::span<const int32_t> eos_tokens) const;

  GenerationRequest request_;
  int32_t output_;
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
  // Tokens of the prompt whose log probabilities were sent; a replay sends none
  // again.
  int64_t prompt_reported_ = 0;
  OutputText text_;
  LogitEdits edits_;
  ThoughtCounter thoughts_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_RUNNING_SEQUENCE_H_
