#include "gpu_worker/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "gpu_worker/tokenizer/utf8.h"

namespace farkv {
namespace {

// Printable bytes of Latin-1 stand for themselves, the others in order for
// U+0100, U+0101, ...
struct Alphabet {
  std::array<uint32_t, 256> character{};
  std::array<int16_t, 512> byte{};  // -1: no byte

  Alphabet() {
    byte.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable =
          (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae);
      character[b] = printable ? b : next++;
      byte[character[b]] = static_cast<int16_t>(b);
    }
  }
};

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

}  // namespace

std::optional<std::string> BytesOfPiece(absl::string_view piece) {
  std::string bytes;
  while (!piece.empty()) {
    const Utf8Prefix prefix = ReadUtf8(piece);
    const auto& table = TheAlphabet().byte;
    if (prefix.kind != Utf8Prefix::Kind::kCharacter ||
        prefix.code_point >= table.size() || table[prefix.code_point] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(table[prefix.code_point]);
    piece.remove_prefix(prefix.bytes);
  }
  return bytes;
}

std::string PieceOfBytes(absl::string_view bytes) {
  std::string piece;
  for (const char byte : bytes) {
    AppendUtf8(TheAlphabet().character[static_cast<uint8_t>(byte)], piece);
  }
  return piece;
}

}  // namespace farkv
