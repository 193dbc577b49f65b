#include "gpu_worker/engine/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "common/base/random.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
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

// By the definition: all ids in order, cut thrice, then the draw.
int32_t SampleSlowly(const std::vector<float>& logits,
                     const SamplingOptions& options, int64_t position) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int32_t id) {
    return logits[static_cast<size_t>(id)];
  };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  const auto weight = [&, best = ids[0]](int32_t id) {
    return std::exp(double{logit(id) - logit(best)} /
                    double{options.temperature});
  };
  std::erase_if(ids, [&](int32_t id) { return weight(id) < options.min_p; });
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < ids.size()) {
    ids.resize(static_cast<size_t>(options.top_k));
  }
  double total = 0, nucleus = 0;
  for (const int32_t id : ids) total += weight(id);
  size_t count = 0;
  while (count < ids.size() &&
         (count == 0 || nucleus < double{options.top_p} * total)) {
    nucleus += weight(ids[count++]);
  }
  double rest =
      nucleus *
      ToUnit(CounterDraw(options.seed, {0, static_cast<uint64_t>(position)}));
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
        for (const float min_p : {0.0f, 0.02f, 0.9f}) {
          const SamplingOptions options{temperature, top_p, top_k, 7, min_p,
                                        1.0f,        0.0f,  0.0f,  {}};
          for (int64_t p = 0; p < 4; ++p) {
            ASSERT_EQ(SampleToken(logits, options, p),
                      SampleSlowly(logits, options, p))
                << top_k << " " << top_p << " " << temperature << " " << min_p
                << " " << p;
          }
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

// The likeliest have exp(2), the next one exp(1): a share of 0.37.
TEST(SamplingTest, MinPKeepsWhatIsLikelyEnoughBesideTheBest) {
  SamplingOptions options;
  options.temperature = 1.0f;
  const auto chosen = [&options](float min_p) {
    options.min_p = min_p;
    std::set<int32_t> tokens;
    for (int64_t p = 0; p < 400; ++p) {
      tokens.insert(SampleToken(kLogits, options, p));
    }
    return tokens;
  };

  EXPECT_THAT(chosen(0.38f), ElementsAre(1, 3));
  EXPECT_THAT(chosen(0.36f), ElementsAre(1, 2, 3));
  EXPECT_THAT(chosen(1.0f), ElementsAre(1, 3));
  // Behind the temperature: exp(1 / 4) of exp(2 / 4) is a share of 0.78.
  options.temperature = 4.0f;
  EXPECT_THAT(chosen(0.75f), ElementsAre(1, 2, 3));
}

TEST(SamplingTest, ATokenThatIsRuledOutIsNeverDrawn) {
  std::vector<float> logits(300, -HUGE_VALF);
  logits[7] = logits[250] = -40.0f;
  for (const float top_p : {0.9f, 1.0f}) {
    for (const int32_t top_k : {0, 5}) {
      SamplingOptions options;
      options.temperature = 1.0f;
      options.top_p = top_p;
      options.top_k = top_k;
      for (int64_t p = 0; p < 2000; ++p) {
        const int32_t token = SampleToken(logits, options, p);
        ASSERT_TRUE(token == 7 || token == 250) << token;
      }
    }
  }
  EXPECT_EQ(SampleToken(logits, {}, 0), 7);
}

struct Refused {
  std::function<void(SamplingOptions&)> change;
  const char* name;
  const char* value;
  const char* range;
};

TEST(SamplingTest, ValuesOutOfRangeAreNamedWithTheirRange) {
  const float nan = std::nanf("");
  using O = SamplingOptions;
  const std::vector<Refused> cases = {
      {[&](O& o) { o.temperature = nan; }, "temperature", "nan", "[0, 100]"},
      {[](O& o) { o.top_p = 0.0f; }, "top_p", "0", "(0, 1]"},
      {[](O& o) { o.top_k = -3; }, "top_k", "-3", "at least 0"},
      {[](O& o) { o.min_p = 1.5f; }, "min_p", "1.5", "[0, 1]"},
      {[&](O& o) { o.min_p = nan; }, "min_p", "nan", "[0, 1]"},
      {[](O& o) { o.repetition_penalty = 0.0f; }, "repetition_penalty", "0",
       "[0.01, 100]"},
      {[&](O& o) { o.repetition_penalty = nan; }, "repetition_penalty", "nan",
       "[0.01, 100]"},
      {[](O& o) { o.frequency_penalty = 2.5f; }, "frequency_penalty", "2.5",
       "[-2, 2]"},
      {[](O& o) { o.presence_penalty = -2.5f; }, "presence_penalty", "-2.5",
       "[-2, 2]"},
      {[](O& o) {
         o.logit_bias = {{10, 1.0f}};
       },
       "logit_bias", "10", "[0, 9]"},
      {[](O& o) {
         o.logit_bias = {{-1, 1.0f}};
       },
       "logit_bias", "-1", "[0, 9]"},
      {[](O& o) {
         o.logit_bias = {{4, 101.0f}};
       },
       "logit_bias[4]", "101", "[-100, 100]"},
      {[&](O& o) {
         o.logit_bias = {{4, nan}};
       },
       "logit_bias[4]", "nan", "[-100, 100]"},
      {[](O& o) { o.logit_bias.resize(1025); }, "logit_bias", "1025",
       "at most 1024"},
  };
  EXPECT_TRUE(SamplingOptions().Validate(10).ok());
  for (const Refused& refused : cases) {
    SamplingOptions options;
    refused.change(options);
    const absl::Status status = options.Validate(10);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(refused.name), HasSubstr(refused.value),
                      HasSubstr(refused.range)));
  }
}

}  // namespace
}  // namespace farkv
