#include <gtest/gtest.h>

#include <cmath>

#include "common/base/half.h"

namespace farkv {
namespace {

TEST(HalfTest, EveryHalfEqualsItsDefinition) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31);
    const double fraction = (bits & 1023) / 1024.0;
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0.0) << bits;
      EXPECT_EQ(std::isinf(value), fraction == 0.0) << bits;
    } else {
      const double expected = exponent == 0
                                  ? std::ldexp(fraction, -14)
                                  : std::ldexp(1.0 + fraction, exponent - 15);
      EXPECT_EQ(static_cast<double>(value), sign * expected) << bits;
    }
  }
}

}  // namespace
}  // namespace farkv
