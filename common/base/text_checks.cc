#include "common/base/text_checks.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

// Enough to recognise a value by; the rest of a long one says nothing.
constexpr size_t kShownBytes = 60;

// Bytes of the UTF-8 character at `text[i]`; 0 when there is none (RFC 3629:
// no overlong forms, no surrogates, nothing above U+10FFFF).
size_t CharacterLength(const std::string& text, size_t i) {
  const auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : uint8_t{0};
  };
  const auto follows = [&](size_t k) { return (byte(k) & 0xc0) == 0x80; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const bool bad =
        (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f);
    return !bad && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool bad =
        (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
    return !bad && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

size_t FindInvalidUtf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::string::npos;
}

std::string ReplaceInvalidUtf8(const std::string& text) {
  std::string whole;
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    if (length == 0) {
      whole += "\xef\xbf\xbd";  // U+FFFD
      ++i;
      continue;
    }
    whole.append(text, i, length);
    i += length;
  }
  return whole;
}

std::string ShownText(const std::string& text) {
  const std::string shown = text.substr(0, kShownBytes);
  const bool whole = FindInvalidUtf8(shown) == std::string::npos;
  return absl::StrCat(
      "'", whole ? absl::Utf8SafeCHexEscape(shown) : absl::CHexEscape(shown),
      shown.size() < text.size() ? "..." : "", "'");
}

absl::Status CheckPrintable(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(text[i]))) {
      return absl::InvalidArgumentError(absl::StrCat(
          ShownText(text), " has a control character at byte ", i));
    }
  }
  const size_t invalid = FindInvalidUtf8(text);
  if (invalid == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ShownText(text), " is not UTF-8 at byte ", invalid));
}

}  // namespace farkv
