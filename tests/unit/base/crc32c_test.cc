#include "common/base/crc32c.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace farkv {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32cTest, AgreesWithThePublishedVectors) {
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(Bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(Crc32c(Bytes(std::string(32, '\xff'))), 0x62a8ab43u);
}

TEST(Crc32cTest, OfNothingIsZero) { EXPECT_EQ(Crc32c({}), 0u); }

TEST(Crc32cTest, ExtendingEqualsTheChecksumOfTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i * i);
  for (size_t cut : {size_t{0}, size_t{1}, size_t{63}, text.size()}) {
    const uint32_t head = Crc32c(Bytes(text.substr(0, cut)));
    EXPECT_EQ(ExtendCrc32c(head, Bytes(text.substr(cut))), Crc32c(Bytes(text)));
  }
}

TEST(Crc32cTest, EveryFlippedBitChangesIt) {
  const std::string text(40, 'x');
  const uint32_t crc = Crc32c(Bytes(text));
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(Crc32c(Bytes(flipped)), crc) << "bit " << bit;
  }
}

}  // namespace
}  // namespace farkv
