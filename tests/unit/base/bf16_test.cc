#include "common/base/bf16.h"

#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace farkv {
namespace {

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Bf16Test, EveryBf16SurvivesTheWayToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<uint16_t>(bits);
    const uint16_t back = FloatToBf16(Bf16ToFloat(value));
    if (std::isnan(Bf16ToFloat(value))) {
      EXPECT_TRUE(std::isnan(Bf16ToFloat(back))) << bits;
    } else {
      EXPECT_EQ(back, value);
    }
  }
}

TEST(Bf16Test, ATieGoesToTheEvenNeighbour) {
  EXPECT_EQ(FloatToBf16(FromBits(0x3f808000)), 0x3f80);  // down to even
  EXPECT_EQ(FloatToBf16(FromBits(0x3f818000)), 0x3f82);  // up to even
}

TEST(Bf16Test, OffATieTheNearerNeighbourWins) {
  EXPECT_EQ(FloatToBf16(FromBits(0x3f808001)), 0x3f81);
  EXPECT_EQ(FloatToBf16(FromBits(0x3f817fff)), 0x3f81);
  EXPECT_EQ(FloatToBf16(FromBits(0xbf808001)), 0xbf81);
}

TEST(Bf16Test, RoundingUpMayReachInfinity) {
  const float largest = std::numeric_limits<float>::max();

  EXPECT_EQ(FloatToBf16(largest), 0x7f80);
  EXPECT_EQ(FloatToBf16(-largest), 0xff80);
}

TEST(Bf16Test, ANanWhosePayloadIsCutOffStaysNan) {
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(FromBits(0x7f800001)))));
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(FromBits(0xffffffff)))));
}

TEST(Bf16Test, TheSignOfZeroIsKept) {
  EXPECT_EQ(FloatToBf16(0.0f), 0x0000);
  EXPECT_EQ(FloatToBf16(-0.0f), 0x8000);
}

}  // namespace
}  // namespace farkv
