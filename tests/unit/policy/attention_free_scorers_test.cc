// The numbers are those of fixture F1 in ALGORITHMS 10.2 and 10.3.
#include "common/policy/attention_free_scorers.h"

#include <cmath>

#include "common/policy/eviction_rows.h"
#include "common/policy/window_mass.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using testing::Digits;
using ::testing::ElementsAre;
using testing::F1;
using testing::RandomHead;

std::vector<float> Times(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

TEST(KeyDiffTest, TheFixture) {
  const F1 f1;
  const std::vector<float> scores = KeyDiffScores(f1.Keys());
  RankedRows ranked;
  for (size_t i = 0; i < scores.size(); ++i) {
    ranked.rows.push_back(
        {.position = static_cast<int64_t>(i), .key = scores[i]});
  }

  EXPECT_THAT(scores, Digits({-.707107, -.707107, -1, .707107, -1, -.707107,
                              -.707107, .707107}));
  EXPECT_THAT(ChooseRows(ranked, 2)->kept, ElementsAre(3, 7));
}

TEST(KeyDiffTest, AKeyWithoutADirectionIsNaNAndChangesNothingElse) {
  RandomHead head(1, 50, 16, 1);
  std::fill_n(head.key(7), 16, 0.0f);
  head.key(8)[0] = std::nanf("");
  const std::vector<float> scores = KeyDiffScores(head.Keys());

  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(std::isnan(scores[i]), i == 7 || i == 8) << i;
  }
}

// mu = (1, 0), Sigma = diag(.5, .25).
TEST(ExpectedAttentionTest, TheFixture) {
  const F1 f1;
  const std::vector<float> mean = {1, 0};
  const std::vector<float> covariance = {.5f, 0, 0, .25f};
  const std::vector<float> mass =
      ExpectedAttention({1, mean, covariance}, f1.Keys());

  EXPECT_THAT(mass, Digits({.377926, .059322, .136332, .031136, .136332,
                            .071556, .128072, .059322}));
  EXPECT_THAT(Times(mass, ValueNormsL2(f1.Values())),
              Digits({.053447, .083894, .096401, .352269, .087295, .101196,
                      .256144, .017797}));
  // z, up to softmax's constant.
  const double z[] = {1.9142, .0625, .8946, -.5821, .8946, .25, .8321, .0625};
  for (size_t i = 1; i < 8; ++i) {
    EXPECT_NEAR(std::log(mass[i] / mass[0]), z[i] - z[0], 1e-4);
  }
}

TEST(ExpectedAttentionTest, IsAveragedOverHeadsAndTheSameOnEveryTarget) {
  RandomHead head(2, 100, 16, 1);
  std::mt19937_64 random(3);
  const std::vector<float> means = testing::RandomFloats(random, 32);
  const std::vector<float> squares = testing::RandomFloats(random, 512);
  const std::span<const float> mean = means, square = squares;
  const auto first =
      ExpectedAttention({1, mean.first(16), square.first(256)}, head.Keys());
  const auto second =
      ExpectedAttention({1, mean.last(16), square.last(256)}, head.Keys());

  ForEachHighwayTarget([&] {
    const auto both = ExpectedAttention({2, means, squares}, head.Keys());
    for (size_t i = 0; i < both.size(); ++i) {
      EXPECT_EQ(both[i], (first[i] + second[i]) / 2);
    }
  });
}

// Cumulative scores of ALGORITHMS 1.1 times the sum of |v|.
TEST(VatpTest, TheFixture) {
  const F1 f1;
  const std::vector<float> sums = CausalWindowSums(f1.Window(), f1.Keys(), 8);
  std::vector<float> scores(8);
  for (size_t i = 0; i < 8; ++i) scores[i] = (sums[i] + sums[8 + i]) / 2;

  EXPECT_THAT(Times(scores, ValueNormsL1(f1.Values())),
              Digits({.0613, .5047, .2963, 2.5239, .2667, .9427, .3732, .0099},
                     5.1e-5));
}

}  // namespace
}  // namespace farkv
