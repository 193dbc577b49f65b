#include "gpu_worker/engine/running_sequence.h"

#include <algorithm>
#include <utility>

namespace farkv {

RunningSequence::RunningSequence(GenerationRequest request,
                                 std::shared_ptr<GenerationStream> stream,
                                 SessionId session, absl::Time admitted)
    : last_token(admitted),
      request_(std::move(request)),
      stream_(std::move(stream)),
      session_(session),
      admitted_(admitted),
      tokens_(request_.prompt),
      text_(request_.stop_texts, request_.include_stop) {}

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
  end.seed = request_.sampling.seed;
  return end;
}

std::optional<GenerationEnd> RunningSequence::Accept(
    std::span<const float> logits, const Tokenizer& tokenizer,
    std::span<const int32_t> eos_tokens) {
  const bool forced = forced_next();
  const int32_t token = forced
                            ? request_.forced[static_cast<size_t>(generated())]
                            : SampleToken(logits, request_.sampling,
                                          static_cast<int64_t>(tokens_.size()));
  if (generated() == 0 && tokenizer.strip_first_space() &&
      std::all_of(tokens_.begin(), tokens_.end(),
                  [&](int32_t before) { return tokenizer.special(before); })) {
    text_.DropFirstSpace();
  }
  tokens_.push_back(token);
  // A forced continuation is processed to its end whatever it contains.
  const bool stops = !forced && IsStop(token, eos_tokens);
  // As with a stop text, what ends the output is no part of it by default.
  const bool shown = !stops || request_.include_stop;
  const std::string piece = shown ? tokenizer.Decode(token) : "";
  stream_->Append(forced ? text_.PushForced(piece) : text_.Push(piece), token);
  if (!forced && text_.matched().has_value()) {
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
