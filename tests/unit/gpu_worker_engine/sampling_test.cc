#include "gpu_worker/engine/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "common/base/random.h"

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

// By the definition: all ids in order, cut twice, then the draw.
int32_t SampleSlowly(const std::vector<float>& logits,
                     const SamplingOptions& options, int64_t position) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int32_t id) {
    return logits[static_cast<size_t>(id)];
  };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < ids.size()) {
    ids.resize(static_cast<size_t>(options.top_k));
  }
  const auto weight = [&](int32_t id) {
    return std::exp(double{logit(id) - logit(ids[0])} /
                    double{options.temperature});
  };
  double total = 0, nucleus = 0;
  for (const int32_t id : ids) total += weight(id);
  size_t count = 0;
  while (count < ids.size() &&
         (count == 0 || nucleus < double{options.top_p} * total)) {
    nucleus += weight(ids[count++]);
  }
  double rest = nucleus * ToUnit(CounterDraw(
                              options.seed, {static_cast<uint64_t>(position)}));
  for (size_t i = 0; i + 1 < count; ++i) {
    rest -= weight(ids[i]);
    if (rest < 0) return ids[i];
  }
  return ids[count - 1];
}

// Logits in steps of an eighth, so that many are equal.
TEST(SamplingTest, TheTokenIsThatOfTheWholeVocabularyInOrder) {
  std::vector<float> logits;
  for (uint64_t i = 0; i < 3000; ++i) {
    logits.push_back(
        std::floor(static_cast<float>(64 * ToUnit(SplitMix64At(3, i)))) / 8);
  }
  for (const int32_t top_k : {0, 2, 300, 2999, 3000, 4000}) {
    for (const float top_p : {0.01f, 0.5f, 0.999f, 1.0f}) {
      for (const float temperature : {0.2f, 1.0f, 30.0f}) {
        const SamplingOptions options{temperature, top_p, top_k, 7};
        for (int64_t p = 0; p < 10; ++p) {
          ASSERT_EQ(SampleToken(logits, options, p),
                    SampleSlowly(logits, options, p))
              << top_k << " " << top_p << " " << temperature << " " << p;
        }
      }
    }
  }
}

TEST(SamplingTest, WhatIsNoNumberIsNoticed) {
  EXPECT_TRUE(AllFinite(kLogits));
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    std::vector<float> logits = kLogits;
    logits[3] = bad;
    EXPECT_FALSE(AllFinite(logits)) << bad;
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
