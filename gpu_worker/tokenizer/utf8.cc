#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

// What may follow a lead byte (Unicode, table 3-7).
struct Lead {
  size_t bytes;  // of the whole character; 0: no lead byte
  uint8_t second_low, second_high;
};

Lead Classify(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte >= 0xc2 && byte <= 0xdf) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Prefix ReadUtf8(absl::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const Lead lead = Classify(first);
  if (lead.bytes == 0) return {Utf8Prefix::Kind::kInvalid, 1, 0};
  if (lead.bytes == 1) return {Utf8Prefix::Kind::kCharacter, 1, first};
  uint32_t value = first & (0x7fu >> lead.bytes);
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8Prefix::Kind::kIncomplete, i, 0};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xbf;
    if (byte < low || byte > high) return {Utf8Prefix::Kind::kInvalid, i, 0};
    value = value << 6 | (byte & 0x3fu);
  }
  return {Utf8Prefix::Kind::kCharacter, lead.bytes, value};
}

void AppendUtf8(uint32_t code_point, std::string& text) {
  const auto tail = [code_point](int shift) {
    return static_cast<char>(0x80u | ((code_point >> shift) & 0x3fu));
  };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xc0u | code_point >> 6);
    text += tail(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xe0u | code_point >> 12);
    text += tail(6);
    text += tail(0);
  } else {
    text += static_cast<char>(0xf0u | code_point >> 18);
    text += tail(12);
    text += tail(6);
    text += tail(0);
  }
}

}  // namespace farkv
