#include "gpu_worker/tokenizer/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/pre_tokenizers.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

bool IsSpace(uint32_t character) {
  if ((character >= 9 && character <= 13) || character == 0x85) return true;
  const auto category =
      utf8proc_category(static_cast<utf8proc_int32_t>(character));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// What \w matches: letters, marks, decimal digits, connectors.
bool IsWord(uint32_t character) {
  const auto category =
      utf8proc_category(static_cast<utf8proc_int32_t>(character));
  return (category >= UTF8PROC_CATEGORY_LU &&
          category <= UTF8PROC_CATEGORY_ND) ||
         category == UTF8PROC_CATEGORY_PC;
}

// The character that ends `text`, which is valid and not empty.
Utf8Prefix LastCharacter(absl::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return ReadUtf8(text.substr(at));
}

size_t SpacesAtEnd(absl::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const Utf8Prefix last = LastCharacter(text.substr(0, end));
    if (!IsSpace(last.code_point)) break;
    end -= last.bytes;
  }
  return text.size() - end;
}

size_t SpacesAtFront(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Prefix first = ReadUtf8(text.substr(at));
    if (!IsSpace(first.code_point)) break;
    at += first.bytes;
  }
  return at;
}

bool StandsAlone(absl::string_view text, TextSpan match) {
  const absl::string_view before = text.substr(0, match.begin);
  const absl::string_view behind = text.substr(match.end);
  return (before.empty() || !IsWord(LastCharacter(before).code_point)) &&
         (behind.empty() || !IsWord(ReadUtf8(behind).code_point));
}

}  // namespace

bool IsMarker(const AddedToken& token) {
  const auto framed = [&token](absl::string_view begin, absl::string_view end) {
    return token.content.size() > begin.size() + end.size() &&
           absl::StartsWith(token.content, begin) &&
           absl::EndsWith(token.content, end);
  };
  return token.special || framed("<|", "|>") || framed("<｜", "｜>") ||
         token.content == "<think>" || token.content == "</think>";
}

absl::StatusOr<AddedTokens> AddedTokens::Create(
    const std::vector<AddedToken>& tokens, bool normalized,
    const Normalizer& normalizer) {
  AddedTokens made;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    std::string content = token.content;
    if (normalized) {
      FARKV_ASSIGN_OR_RETURN(content, normalizer.Apply(content));
    }
    if (made.tree_.Add(content, static_cast<int32_t>(made.tokens_.size()))) {
      made.tokens_.push_back(token);
      made.has_markers_ |= IsMarker(token);
    }
  }
  return made;
}

bool AddedTokens::Counts(const AddedToken& token, absl::string_view text,
                         TextSpan match,
                         std::span<const TextSpan> literal) const {
  if (token.single_word && !StandsAlone(text, match)) return false;
  if (!IsMarker(token)) return true;
  // The space that a normaliser puts in front of the token's text may be
  // anybody's.
  absl::string_view characters =
      text.substr(match.begin, match.end - match.begin);
  while (token.normalized && absl::ConsumePrefix(&characters, kMetaspace)) {
  }
  match.begin = match.end - characters.size();
  const auto behind = std::upper_bound(
      literal.begin(), literal.end(), match.begin,
      [](size_t at, const TextSpan& span) { return at < span.end; });
  return behind == literal.end() || behind->begin >= match.end;
}

std::vector<AddedTokens::Segment> AddedTokens::Split(
    absl::string_view text, std::span<const TextSpan> literal) const {
  std::vector<Segment> segments;
  size_t done = 0;
  size_t spaces_end = 0;  // of the white space that some token took behind it
  for (size_t at = 0; !tokens_.empty() && at < text.size();) {
    size_t bytes = 0;
    int32_t index = -1;
    tree_.ForEachPrefix(text.substr(at), [&](size_t length, int32_t found) {
      bytes = length;
      index = found;
    });
    if (index < 0) {
      ++at;
      continue;
    }
    TextSpan match{at, at + bytes};
    at = match.end;
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    if (!Counts(token, text, match, literal)) continue;
    if (token.lstrip && match.begin > done) {
      match.begin -= SpacesAtEnd(text.substr(done, match.begin - done));
    }
    if (token.rstrip) {
      const size_t from = std::max(match.end, spaces_end);
      match.end = spaces_end = from + SpacesAtFront(text.substr(from));
    }
    if (match.begin > done) segments.push_back({{done, match.begin}, -1});
    segments.push_back({match, token.id});
    done = match.end;
  }
  if (text.size() > done) segments.push_back({{done, text.size()}, -1});
  return segments;
}

}  // namespace farkv
