#include "gpu_worker/engine/output_text.h"

#include <algorithm>
#include <utility>

namespace farkv {
namespace {

// Bytes of the character that starts with `lead`; 1 for a stray byte.
size_t CharacterBytes(unsigned char lead) {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  if (lead >= 0xc0) return 2;
  return 1;
}

// Length of `text` without an unfinished character at its end.
size_t WholeCharacters(const std::string& text) {
  const size_t last = text.size();
  for (size_t back = 1; back <= 3 && back <= last; ++back) {
    const auto byte = static_cast<unsigned char>(text[last - back]);
    if ((byte & 0xc0) == 0x80) continue;  // a continuation byte
    return CharacterBytes(byte) > back ? last - back : last;
  }
  return last;
}

}  // namespace

std::string OutputText::Push(const std::string& piece) {
  if (matched_.has_value()) return "";
  held_ += piece;
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

// Longest prefix of held_ that no stop text can reach back into.
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
  return std::min(held_.size() - keep, WholeCharacters(held_));
}

std::string OutputText::Flush() {
  return matched_.has_value() ? "" : std::exchange(held_, {});
}

}  // namespace farkv
