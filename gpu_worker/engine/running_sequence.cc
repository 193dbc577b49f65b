#include "gpu_worker/engine/running_sequence.h"

#include <algorithm>
#include <utility>

namespace farkv {

RunningSequence::RunningSequence(GenerationRequest request, int32_t output,
                                 std::shared_ptr<GenerationStream> stream,
                                 SessionId session, absl::Time admitted)
    : last_token(admitted),
      request_(std::move(request)),
      output_(output),
      stream_(std::move(stream)),
      session_(session),
      admitted_(admitted),
      tokens_(request_.prompt),
      text_(request_.stop_texts, request_.include_stop),
      edits_(request_.sampling, request_.prompt),
      thoughts_(std::nullopt, {}) {}

int64_t RunningSequence::next_rows() const {
  const auto prompt = static_cast<int64_t>(request_.prompt.size());
  const auto known = static_cast<int64_t>(tokens_.size());
  if (!lost().empty()) {
    return std::min(static_cast<int64_t>(lost().size()), lost_rows_);
  }
  if (one_row) return 1;
  if (processed_ < prompt) return prompt - processed_;
  const int64_t to_plan = replay_rows - (processed_ - prompt) % replay_rows;
  return std::min(known - processed_, to_plan);
}

// The row at position p has the logits of token p + 1.
int64_t RunningSequence::logit_rows(int64_t rows) const {
  if (!lost().empty()) return 0;
  const auto prompt = static_cast<int64_t>(request_.prompt.size());
  const bool chooses =
      rows > 0 && rows == static_cast<int64_t>(pending().size());
  if (!reports_prompt() || prompt_reported_ >= prompt) return chooses ? 1 : 0;
  const int64_t reported_rows =
      std::max<int64_t>(0, prompt_reported_ - 1 - processed_);
  return std::max<int64_t>(chooses ? 1 : 0, rows - reported_rows);
}

void RunningSequence::ReportPrompt(std::span<const float> logits,
                                   int64_t rows) {
  const auto prompt = static_cast<int64_t>(request_.prompt.size());
  if (!reports_prompt() || prompt_reported_ >= prompt || rows == 0) return;
  const size_t vocab = logits.size() / static_cast<size_t>(rows);
  std::vector<TokenLogprobs> entries;
  if (prompt_reported_ == 0) entries.emplace_back();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t next = processed_ - rows + row + 1;
    if (next >= prompt) break;  // this row chooses the first token
    entries.push_back(
        LogprobsOf(logits.subspan(static_cast<size_t>(row) * vocab, vocab),
                   tokens_[static_cast<size_t>(next)], request_.top_logprobs));
  }
  prompt_reported_ += static_cast<int64_t>(entries.size());
  stream_->AppendPrompt(output_, std::move(entries));
}

int64_t RunningSequence::Advance(int64_t rows) {
  if (!lost().empty()) {
    next_lost_ += static_cast<size_t>(rows);
    lost_rows_ = std::min(2 * lost_rows_, kMaxLostRows);
    recomputed_ += rows;
    return rows;
  }
  const int64_t again = std::clamp<int64_t>(replay_end_ - processed_, 0, rows);
  processed_ += rows;
  recomputed_ += again;
  return again;
}

void RunningSequence::Recompute(std::vector<int64_t> lost) {
  ++recoveries_;
  lost_ = std::move(lost);
  next_lost_ = 0;
  lost_rows_ = kMaxLostRows;
}

bool RunningSequence::HalveLostRows() {
  const int64_t rows = next_rows();
  if (lost().empty() || rows <= 1) return false;
  lost_rows_ = rows / 2;
  return true;
}

void RunningSequence::Replay(SessionId session) {
  ++recoveries_;
  lost_.clear();
  next_lost_ = 0;
  session_ = session;
  replay_end_ = std::max(replay_end_, processed_);
  processed_ = 0;
  one_row = false;
}

GenerationEnd RunningSequence::MakeEnd(FinishReason reason) const {
  GenerationEnd end;
  end.reason = reason;
  end.prompt_tokens = static_cast<int64_t>(request_.prompt.size());
  end.completion_tokens = generated();
  end.reasoning_tokens = thoughts_.count();
  end.seed = request_.sampling.seed;
  return end;
}

int32_t RunningSequence::Choose(std::span<float> logits,
                                std::span<const int32_t> eos_tokens) {
  std::vector<int32_t> ruled_out;
  if (generated() < request_.min_new_tokens) ruled_out = StopTokens(eos_tokens);
  edits_.Apply(request_.sampling, ruled_out, logits);
  return SampleToken(logits, request_.sampling,
                     static_cast<int64_t>(tokens_.size()));
}

std::optional<GenerationEnd> RunningSequence::Accept(
    std::span<float> logits, const Tokenizer& tokenizer,
    std::span<const int32_t> eos_tokens) {
  const bool forced = forced_next();
  // Choosing edits the logits.
  std::vector<float> own;
  if (request_.logprobs) own.assign(logits.begin(), logits.end());
  const int32_t token = forced
                            ? request_.forced[static_cast<size_t>(generated())]
                            : Choose(logits, eos_tokens);
  if (generated() == 0 && tokenizer.strip_first_space() &&
      std::all_of(tokens_.begin(), tokens_.end(),
                  [&](int32_t before) { return tokenizer.special(before); })) {
    text_.DropFirstSpace();
  }
  tokens_.push_back(token);
  edits_.AddOutput(token);
  thoughts_.AddOutput(token);
  // A forced continuation is processed to its end whatever it contains.
  const bool stops = !forced && IsStop(token, eos_tokens);
  // As with a stop text, what ends the output is no part of it by default.
  const bool shown = !stops || request_.include_stop;
  const std::string piece = shown ? tokenizer.Decode(token) : "";
  const bool may_end = !forced && generated() > request_.min_new_tokens;
  std::optional<TokenLogprobs> logprobs;
  if (request_.logprobs) {
    logprobs = LogprobsOf(own, token, request_.top_logprobs);
  }
  stream_->Append(output_,
                  may_end ? text_.Push(piece) : text_.PushForced(piece), token,
                  std::move(logprobs));
  if (may_end && text_.matched().has_value()) {
    GenerationEnd end = MakeEnd(FinishReason::kStop);
    end.stop_text = text_.matched();
    return end;
  }
  if (stops) {
    GenerationEnd end = MakeEnd(FinishReason::kStop);
    end.stop_token = token;
    return end;
  }
  if (generated() < request_.max_new_tokens) return std::nullopt;
  return MakeEnd(FinishReason::kLength);
}

std::vector<int32_t> RunningSequence::StopTokens(
    std::span<const int32_t> eos_tokens) const {
  std::vector<int32_t> stops = request_.stop_tokens;
  if (!request_.ignore_eos) {
    stops.insert(stops.end(), eos_tokens.begin(), eos_tokens.end());
  }
  return stops;
}

// Of the token that was taken last.
bool RunningSequence::IsStop(int32_t token,
                             std::span<const int32_t> eos_tokens) const {
  if (generated() <= request_.min_new_tokens) return false;
  const auto contains = [token](std::span<const int32_t> tokens) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  return contains(request_.stop_tokens) ||
         (!request_.ignore_eos && contains(eos_tokens));
}

}  // namespace farkv
