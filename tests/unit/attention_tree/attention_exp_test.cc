#include "common/attention_tree/attention_exp.h"

#include <cmath>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/unit/attention_tree/attention_exp_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After foreach_target.h, so that each target sees it anew.
#include "common/attention_tree/attention_exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {

void ExpAll(const float* x, size_t count, float* y) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(AttentionExp(d, hn::LoadU(d, x + i)), d, y + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"

namespace farkv {
namespace {

HWY_EXPORT(ExpAll);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Arguments over the whole range, a multiple of 16 of them.
std::vector<float> Arguments() {
  std::vector<float> x = {0.0f,   -0.0f,      -1e-30f,      -1e-8f,
                          -87.0f, -87.01f,    -88.0f,       -104.0f,
                          -1e30f, -kInfinity, -0.34657359f, -0.34657362f,
                          -1.0f,  -10.0f,     -50.0f,       -86.99999f};
  for (int i = 0; i < 160000; ++i) {
    x.push_back(-90.0f * static_cast<float>(i) / 160000.0f);
  }
  return x;
}

TEST(AttentionExpTest, StaysWithinItsStatedError) {
  double worst = 0;
  for (const float x : Arguments()) {
    if (x < AttentionExpConstants::kMinArgument) continue;
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(AttentionExp(x) / want - 1));
  }

  RecordProperty("worst_relative_error_1e9", static_cast<int>(worst * 1e9));
  EXPECT_LT(worst, 1e-7);
}

TEST(AttentionExpTest, IsExactAtItsEnds) {
  EXPECT_EQ(AttentionExp(0.0f), 1.0f);
  EXPECT_EQ(AttentionExp(-0.0f), 1.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(AttentionExp(-kInfinity)), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(AttentionExp(-87.01f)), 0u);
  EXPECT_GT(AttentionExp(-87.0f), 0.0f);
  EXPECT_TRUE(
      std::isnan(AttentionExp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(AttentionExpTest, HasTheSameBitsUnderEveryHighwayTarget) {
  const std::vector<float> x = Arguments();
  std::vector<float> y(x.size());
  ForEachHighwayTarget([&] {
    HWY_DYNAMIC_DISPATCH(ExpAll)(x.data(), x.size(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]),
                std::bit_cast<uint32_t>(AttentionExp(x[i])))
          << " at " << x[i];
    }
  });
}

}  // namespace
}  // namespace farkv
#endif  // HWY_ONCE
