#include "common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace farkv {

uint32_t Crc32c(std::span<const std::byte> data) {
  return ExtendCrc32c(0, data);
}

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> data) {
  constexpr size_t kPiece = size_t{1} << 30;  // crc32_iscsi takes an int
  uint32_t state = ~crc;
  while (!data.empty()) {
    const auto piece = data.first(std::min(data.size(), kPiece));
    // crc32_iscsi reads only, although its parameter is not const.
    auto* bytes =
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state = crc32_iscsi(bytes, static_cast<int>(piece.size()), state);
    data = data.subspan(piece.size());
  }
  return ~state;
}

}  // namespace farkv
