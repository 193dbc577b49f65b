#include "kernels/quantized_groups.h"

#include <cmath>
#include <vector>

#include "common/base/half.h"
#include "gtest/gtest.h"
#include "tests/unit/kernels/stored_weight.h"

namespace farkv {
namespace {

TEST(QuantizedGroupsTest, EveryTypeIsDequantizedAsItsFormatSays) {
  for (const WeightType type : kQuantizedTypes) {
    SCOPED_TRACE(WeightTypeName(type));
    const StoredWeight weight = RandomStoredWeight(type, 1, 1024, 1);
    std::vector<float> out(1024, -7.0f);

    DequantizeRow(type, weight.bytes.data(), 1024, out.data());

    for (size_t i = 0; i < out.size(); ++i) {
      const double magnitude = std::abs(weight.values[i]) + 1;
      ASSERT_NEAR(out[i], weight.values[i], 1e-7 * magnitude) << i;
    }
  }
}

TEST(QuantizedGroupsTest, ARowMayStandAtAnyAddress) {
  for (const WeightType type : kQuantizedTypes) {
    SCOPED_TRACE(WeightTypeName(type));
    const StoredWeight weight = RandomStoredWeight(type, 1, 256, 2);
    std::vector<std::byte> shifted(weight.bytes.size() + 1);
    std::copy(weight.bytes.begin(), weight.bytes.end(), shifted.begin() + 1);
    std::vector<float> expected(256), out(256);

    DequantizeRow(type, weight.bytes.data(), 256, expected.data());
    DequantizeRow(type, shifted.data() + 1, 256, out.data());

    EXPECT_EQ(out, expected);
  }
}

TEST(QuantizedGroupsTest, HalvesKeepZeroSubnormalsAndInfinity) {
  EXPECT_EQ(HalfToFloat(0x0000), 0.0f);
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
  EXPECT_EQ(HalfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(HalfToFloat(0x03ff), 1023 * 0x1p-24f);
  EXPECT_EQ(HalfToFloat(0x0400), 0x1p-14f);
  EXPECT_EQ(HalfToFloat(0xc000), -2.0f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
  EXPECT_TRUE(std::isinf(HalfToFloat(0xfc00)));
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
}

}  // namespace
}  // namespace farkv
