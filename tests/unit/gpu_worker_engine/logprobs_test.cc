#include "gpu_worker/engine/logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace farkv {
namespace {

using ::testing::SizeIs;

std::vector<int32_t> Tokens(const std::vector<TokenLogprob>& entries) {
  std::vector<int32_t> tokens;
  for (const TokenLogprob& entry : entries) tokens.push_back(entry.token);
  return tokens;
}

// exp: 1, 4, 2, 1 of 8.
TEST(LogprobsTest, TheyAreTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits = {0.0f, std::log(4.0f), std::log(2.0f),
                                     0.0f};

  const TokenLogprobs entry = LogprobsOf(logits, 2, 3);

  EXPECT_EQ(entry.chosen->token, 2);
  EXPECT_FLOAT_EQ(entry.chosen->logprob, std::log(0.25f));
  // Of equal ones the lower id first.
  EXPECT_EQ(Tokens(entry.top), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_FLOAT_EQ(entry.top[0].logprob, std::log(0.5f));
  EXPECT_EQ(entry.top[1], *entry.chosen);
  EXPECT_FLOAT_EQ(entry.top[2].logprob, std::log(0.125f));
}

TEST(LogprobsTest, LargeLogitsOverflowNothing) {
  const TokenLogprobs entry =
      LogprobsOf(std::vector<float>{3e38f, 3e38f, -3e38f}, 2, 2);

  EXPECT_FLOAT_EQ(entry.top[0].logprob, -std::log(2.0f));
  EXPECT_TRUE(entry.chosen->logprob < -1e38f);
}

TEST(LogprobsTest, NoMoreAreReportedThanAskedForOrThere) {
  const std::vector<float> logits = {1.0f, 2.0f};
  EXPECT_THAT(LogprobsOf(logits, 0, 0).top, SizeIs(0));
  EXPECT_THAT(LogprobsOf(logits, 0, 1).top, SizeIs(1));
  EXPECT_THAT(LogprobsOf(logits, 0, 20).top, SizeIs(2));
}

}  // namespace
}  // namespace farkv
