#include "gpu_worker/engine/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace farkv {
namespace {

using ::testing::HasSubstr;

const std::vector<float> kLogits = {0.0f, 2.0f, 1.0f, 2.0f, -1.0f};

TEST(SamplingTest, GreedyTakesTheLowestIdAmongEqualLogits) {
  EXPECT_EQ(SampleToken(kLogits, {}, 0), 1);
}

TEST(SamplingTest, TheSameSeedAndPositionGiveTheSameToken) {
  SamplingOptions options;
  options.temperature = 1.0f;
  options.seed = 5;
  std::vector<int32_t> first, again;

  for (int64_t p = 0; p < 64; ++p) {
    first.push_back(SampleToken(kLogits, options, p));
    again.push_back(SampleToken(kLogits, options, p));
  }

  EXPECT_EQ(first, again);
  options.seed = 6;
  std::vector<int32_t> other;
  for (int64_t p = 0; p < 64; ++p) {
    other.push_back(SampleToken(kLogits, options, p));
  }
  EXPECT_NE(first, other);
}

TEST(SamplingTest, FrequenciesFollowTheSoftmax) {
  SamplingOptions options;
  options.temperature = 1.0f;
  std::map<int32_t, int> counts;
  constexpr int kDraws = 20000;

  for (int64_t p = 0; p < kDraws; ++p) {
    ++counts[SampleToken(kLogits, options, p)];
  }

  double total = 0.0;
  for (float logit : kLogits) total += std::exp(static_cast<double>(logit));
  for (size_t i = 0; i < kLogits.size(); ++i) {
    const double expected = std::exp(static_cast<double>(kLogits[i])) / total;
    EXPECT_NEAR(counts[static_cast<int32_t>(i)] / double{kDraws}, expected,
                0.015)
        << i;
  }
}

TEST(SamplingTest, TopKAndTopPCutTheTail) {
  SamplingOptions options;
  options.temperature = 5.0f;
  options.top_k = 2;
  for (int64_t p = 0; p < 200; ++p) {
    const int32_t token = SampleToken(kLogits, options, p);
    EXPECT_TRUE(token == 1 || token == 3) << token;
  }
  options.top_k = 0;
  options.temperature = 1.0f;
  options.top_p = 0.3f;  // the best token alone has 0.38
  for (int64_t p = 0; p < 200; ++p) {
    EXPECT_EQ(SampleToken(kLogits, options, p), 1);
  }
}

TEST(SamplingTest, ValuesOutOfRangeAreNamed) {
  SamplingOptions options;
  options.temperature = std::nanf("");
  EXPECT_THAT(std::string(options.Validate().message()),
              HasSubstr("temperature"));
  options = {};
  options.top_p = 0.0f;
  EXPECT_THAT(std::string(options.Validate().message()), HasSubstr("top_p"));
  options = {};
  options.top_k = -3;
  EXPECT_THAT(std::string(options.Validate().message()), HasSubstr("-3"));
}

}  // namespace
}  // namespace farkv
