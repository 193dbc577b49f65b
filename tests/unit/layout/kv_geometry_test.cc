#include "common/layout/kv_geometry.h"

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using testing::HasSubstr;

const KvGeometry kSmall{24, 3, 64, DType::kBf16};

TEST(KvGeometryTest, SizesFollowFromTheShape) {
  EXPECT_EQ(kSmall.VectorBytes(), 128u);
  EXPECT_EQ(kSmall.RowBytes(), 256u);
  EXPECT_EQ(kSmall.BlockBytes(kPageTokens), 49152u);
  EXPECT_EQ((KvGeometry{24, 3, 64, DType::kF32}.RowBytes()), 512u);
}

TEST(KvGeometryTest, AHeadsKeysThenItsValuesAreContiguous) {
  constexpr size_t kRows = 16;
  std::vector<size_t> starts;
  for (size_t head = 0; head < 3; ++head) {
    for (size_t row = 0; row < kRows; ++row) {
      starts.push_back(kSmall.KeyOffset(kRows, head, row));
    }
    for (size_t row = 0; row < kRows; ++row) {
      starts.push_back(kSmall.ValueOffset(kRows, head, row));
    }
  }

  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(starts[i], i * kSmall.VectorBytes());
  }
  EXPECT_EQ(starts.size() * kSmall.VectorBytes(), kSmall.BlockBytes(kRows));
}

TEST(KvGeometryTest, HeadsLieAHeadStrideApart) {
  EXPECT_EQ(kSmall.KeyOffset(64, 2, 5) - kSmall.KeyOffset(64, 1, 5),
            kSmall.HeadStride(64));
}

TEST(KvGeometryTest, EveryLimitIsInsideAndTheNextNumberOutside) {
  struct Case {
    const char* field;
    std::function<void(KvGeometry&, int32_t)> set;
    int32_t low, high;
  };
  const std::vector<Case> cases = {
      {"num_layers", [](auto& g, int32_t v) { g.num_layers = v; }, 1, 1024},
      {"num_kv_heads", [](auto& g, int32_t v) { g.num_kv_heads = v; }, 1, 256},
      {"head_dim", [](auto& g, int32_t v) { g.head_dim = v; }, 16, 512}};
  for (const Case& c : cases) {
    for (int32_t value : {c.low, c.high}) {
      KvGeometry geometry = kSmall;
      c.set(geometry, value);
      EXPECT_TRUE(geometry.Validate().ok()) << geometry.ToString();
    }
    for (int32_t value : {c.low - 1, c.high + 1, -1}) {
      KvGeometry geometry = kSmall;
      c.set(geometry, value);
      const absl::Status status = geometry.Validate();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.field));
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(std::to_string(value)));
    }
  }
}

TEST(KvGeometryTest, AHeadDimensionThatIsNoMultipleOf16IsRefused) {
  KvGeometry geometry = kSmall;
  geometry.head_dim = 72;

  EXPECT_THAT(std::string(geometry.Validate().message()), HasSubstr("72"));
}

TEST(KvGeometryTest, AnUnknownDtypeIsRefused) {
  KvGeometry geometry = kSmall;
  geometry.dtype = static_cast<DType>(7);

  EXPECT_THAT(std::string(geometry.Validate().message()),
              HasSubstr("dtype is 7"));
  EXPECT_STREQ(DTypeName(geometry.dtype), "unknown");
}

TEST(KvGeometryTest, PrintsItsShape) {
  EXPECT_EQ(kSmall.ToString(), "24 layers x 3 KV heads x 64 bf16");
}

}  // namespace
}  // namespace farkv
