#include "common/policy/streaming_llm_policy.h"

#include <cmath>
#include <random>

#include "common/policy/destruction_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using testing::Digits;
using ::testing::ElementsAre;

// ALGORITHMS 3: sinks 2, recent 3, after token 7.
TEST(StreamingLlmPolicyTest, TheWorkedExample) {
  const std::vector<int64_t> positions = {0, 1, 2, 3, 4, 5, 6, 7};
  EvictionInput input;
  input.positions = positions;
  input.num_tokens = 8;
  input.num_kept = 5;

  const auto decision = DecideEviction(StreamingLlmPolicy{.sinks = 2}, input);

  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_THAT(decision->kept, ElementsAre(0, 1, 5, 6, 7));
  EXPECT_THAT(CompactDeltas(decision->kept), ElementsAre(0, 0, -3, -3, -3));
}

std::vector<float> Rotated(double angle) {
  return {static_cast<float>(std::cos(angle)),
          static_cast<float>(std::sin(angle))};
}

// ALGORITHMS 0.4: theta = 1, one frequency, key (1, 0).
TEST(RotateKeyTest, AKeyOfFiveMovedByMinusThreeIsThatOfTwo) {
  std::vector<float> key = Rotated(5);
  EXPECT_THAT(key, Digits({.283662, -.958924}));
  const double frequency = 1;

  RotateKey(key, -3, {&frequency, 1});

  EXPECT_THAT(key, Digits({-.416147, .909297}));
}

// A query derived from the shortened cache sits 30 positions too early.
TEST(RotateKeyTest, MixedPositionsChangeTheProduct) {
  for (const auto& [frequency, apart, mixed] :
       {std::tuple{1.0, -.839072, .408082},
        std::tuple{.01, .995004, .980067}}) {
    std::vector<float> key = {1, 0};
    std::vector<float> query = {1, 0};
    std::vector<float> early = {1, 0};
    RotateKey(key, 100, {&frequency, 1});
    RotateKey(query, 110, {&frequency, 1});
    RotateKey(early, 80, {&frequency, 1});

    EXPECT_NEAR(key[0] * query[0] + key[1] * query[1], apart, 1e-6);
    EXPECT_NEAR(key[0] * early[0] + key[1] * early[1], mixed, 1e-6);
  }
}

TEST(RotateKeyTest, PairsLieHalfAHeadApart) {
  std::vector<float> key = {1, 0, 0, 1};
  const double frequencies[] = {1.0, .5};

  RotateKey(key, 2, frequencies);

  EXPECT_THAT(key, Digits({std::cos(2.0), -std::sin(1.0), std::sin(2.0),
                           std::cos(1.0)}));
}

TEST(RotateKeyTest, ThereAndBackIsWithinRounding) {
  std::mt19937_64 random(3);
  const std::vector<float> original = testing::RandomFloats(random, 64);
  std::vector<double> frequencies(32);
  for (size_t c = 0; c < 32; ++c) {
    frequencies[c] = std::pow(10000.0, -static_cast<double>(c) / 32);
  }
  std::vector<float> key = original;

  RotateKey(key, -4321, frequencies);
  RotateKey(key, 4321, frequencies);

  for (size_t c = 0; c < 64; ++c) EXPECT_NEAR(key[c], original[c], 1e-6);
}

}  // namespace
}  // namespace farkv
