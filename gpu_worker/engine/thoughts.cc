#include "gpu_worker/engine/thoughts.h"

#include <vector>

namespace farkv {
namespace {

std::optional<int32_t> OneToken(const Tokenizer& tokenizer, const char* text) {
  const auto tokens = tokenizer.Encode(text);
  if (!tokens.ok() || tokens->size() != 1) return std::nullopt;
  // Not the token of what is unknown.
  if (tokenizer.Spelling(tokens->front()) != text) return std::nullopt;
  return tokens->front();
}

}  // namespace

std::optional<ThoughtMarks> FindThoughtMarks(const Tokenizer& tokenizer) {
  const auto start = OneToken(tokenizer, "<think>");
  const auto end = OneToken(tokenizer, "</think>");
  if (!start || !end) return std::nullopt;
  return ThoughtMarks{*start, *end};
}

ThoughtCounter::ThoughtCounter(std::optional<ThoughtMarks> marks,
                               std::span<const int32_t> prompt)
    : marks_(marks) {
  for (const int32_t token : prompt) IsMark(token);
}

bool ThoughtCounter::IsMark(int32_t token) {
  if (!marks_ || (token != marks_->start && token != marks_->end)) return false;
  inside_ = token == marks_->start;
  return true;
}

void ThoughtCounter::AddOutput(int32_t token) {
  if (!IsMark(token) && inside_) ++count_;
}

}  // namespace farkv
