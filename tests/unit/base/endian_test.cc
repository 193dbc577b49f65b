#include "common/base/endian.h"

#include <array>
#include <cstdint>

#include "gtest/gtest.h"

namespace farkv {
namespace {

TEST(EndianTest, StoresTheLowByteFirstAtAnyAddress) {
  std::array<std::byte, 6> bytes{};

  StoreLe<uint32_t>(&bytes[1], 0x04030201);

  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t expected = i == 5 ? 0 : i;
    EXPECT_EQ(std::to_integer<size_t>(bytes[i]), expected);
  }
}

TEST(EndianTest, LoadsWhatWasStored) {
  std::array<std::byte, 9> bytes{};

  StoreLe<int64_t>(&bytes[1], -2);

  EXPECT_EQ(LoadLe<int64_t>(&bytes[1]), -2);
  EXPECT_EQ(LoadLe<uint16_t>(&bytes[1]), 0xfffe);
}

}  // namespace
}  // namespace farkv
