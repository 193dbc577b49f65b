#include "kernels/quantized_groups.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
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

// A line of tests/golden/quantized_groups.txt, which gguf-py wrote.
struct GoldenRow {
  std::string type, bytes;
  std::vector<float> values;
};

std::vector<GoldenRow> GoldenRows() {
  const char* root = std::getenv("FARKV_TEST_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) +
                     "/tests/golden/quantized_groups.txt");
  std::vector<GoldenRow> rows;
  std::string type, bytes, values;
  while (file >> type >> bytes >> values) {
    const std::string raw = absl::HexStringToBytes(values);
    GoldenRow& row = rows.emplace_back();
    row.type = type;
    row.bytes = absl::HexStringToBytes(bytes);
    row.values.resize(raw.size() / sizeof(float));
    std::memcpy(row.values.data(), raw.data(), raw.size());
  }
  return rows;
}

TEST(QuantizedGroupsTest, EveryTypeIsReadAsTheReferencesPackageReadsIt) {
  std::set<std::string> seen;
  for (const GoldenRow& row : GoldenRows()) {
    SCOPED_TRACE(row.type);
    const auto* type = std::ranges::find_if(kQuantizedTypes, [&](WeightType t) {
      return WeightTypeName(t) == row.type;
    });
    ASSERT_NE(type, std::end(kQuantizedTypes));
    std::vector<float> out(row.values.size());

    DequantizeRow(*type, reinterpret_cast<const std::byte*>(row.bytes.data()),
                  static_cast<int32_t>(out.size()), out.data());

    float largest = 0.0f;
    for (const float value : row.values) {
      largest = std::max(largest, std::abs(value));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], row.values[i], 1e-6f * largest) << i;
    }
    seen.insert(row.type);
  }
  EXPECT_EQ(seen.size(), std::size(kQuantizedTypes));
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
