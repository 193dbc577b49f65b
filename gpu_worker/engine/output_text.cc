#include "gpu_worker/engine/output_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {

// Moves what is known of bytes_ to held_.
void OutputText::TakeCharacters(bool at_end) {
  absl::string_view rest = bytes_;
  if (drop_first_space_ && !rest.empty()) {
    drop_first_space_ = false;
    absl::ConsumePrefix(&rest, " ");
  }
  while (!rest.empty()) {
    const Utf8Prefix next = ReadUtf8(rest);
    if (next.kind == Utf8Prefix::Kind::kIncomplete && !at_end) break;
    if (next.kind == Utf8Prefix::Kind::kCharacter) {
      held_.append(rest.data(), next.bytes);
    } else {
      held_ += kReplacementCharacter;
    }
    rest.remove_prefix(next.bytes);
  }
  bytes_.erase(0, bytes_.size() - rest.size());
}

std::string OutputText::Push(const std::string& piece) {
  if (matched_.has_value()) return "";
  bytes_ += piece;
  TakeCharacters(/*at_end=*/false);
  size_t first = std::string::npos;
  const std::string* match = nullptr;
  for (const std::string& stop : stop_texts_) {
    const size_t at = held_.find(stop);
    if (at < first) {
      first = at;
      match = &stop;
    }
  }
  if (match != nullptr) {
    matched_ = *match;
    held_.resize(first + (include_stop_ ? match->size() : 0));
    return std::exchange(held_, {});
  }
  const size_t length = SafeLength();
  std::string out = held_.substr(0, length);
  held_.erase(0, length);
  return out;
}

std::string OutputText::PushForced(const std::string& piece) {
  bytes_ += piece;
  TakeCharacters(/*at_end=*/false);
  return std::exchange(held_, {});
}

// Longest prefix of held_ that no stop text can reach back into. It ends on a
// whole character: stop texts are UTF-8, so what one may begin with begins with
// a character.
size_t OutputText::SafeLength() const {
  size_t keep = 0;
  for (const std::string& stop : stop_texts_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) {
        keep = n;
        break;
      }
    }
  }
  return held_.size() - keep;
}

std::string OutputText::Flush() {
  if (matched_.has_value()) return "";
  TakeCharacters(/*at_end=*/true);
  return std::exchange(held_, {});
}

}  // namespace farkv
