// The numbers are those of fixture F1 in ALGORITHMS 5.
#include "common/policy/rkv_policy.h"

#include <algorithm>
#include <cmath>

#include "common/policy/destruction_policy.h"
#include "common/policy/panel_math.h"
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

RkvPolicy Small(RkvPolicy policy, int32_t lambda) {
  policy.window.window = 2;
  policy.window.kernel = 3;
  policy.lambda = lambda;
  return policy;
}

std::vector<float> Candidates(const RkvPolicy& policy, const F1& f1) {
  std::vector<float> keys;
  const auto ranked = policy.Rank(f1.Input(5));
  EXPECT_TRUE(ranked.ok()) << ranked.status();
  for (size_t i = 0; i < 6; ++i) {
    keys.push_back(static_cast<float>(ranked->rows[i].key));
  }
  return keys;
}

TEST(RkvPolicyTest, TheMeansWithForgiveness) {
  const F1 f1;

  EXPECT_THAT(ForgivingMeanCosines(f1.Keys(), .5f),
              Digits({.301777, .176777, .301777, -.426777, .125, .051777, -.125,
                      -.426777}));
}

TEST(RkvPolicyTest, TheRedundancyIsASoftmaxOverAllRows) {
  const F1 f1;
  std::vector<float> r = ForgivingMeanCosines(f1.Keys(), .5f);
  r.resize(16);
  SoftmaxInPlace(r.data(), 8);
  r.resize(6);

  EXPECT_THAT(r,
              Digits({.163477, .144268, .163477, .078895, .136988, .127316}));
}

TEST(RkvPolicyTest, TheOfficialRankingAtBothLambdas) {
  const F1 f1;
  const RkvPolicy tenth = Small(RkvPolicy::Official(), 1000);
  const RkvPolicy half = Small(RkvPolicy::Official(), 5000);

  EXPECT_THAT(Candidates(tenth, f1), Digits({-.123669, -.10638, -.130478,
                                             -.054354, -.099829, -.091124}));
  EXPECT_THAT(DecideEviction(tenth, f1.Input(5))->kept,
              ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(Candidates(half, f1),
              Digits({.035563, .045168, .001516, .043807, .048807, .053644}));
  EXPECT_THAT(DecideEviction(half, f1.Input(5))->kept,
              ElementsAre(1, 4, 5, 6, 7));
}

TEST(RkvPolicyTest, TheMeanVariant) {
  F1 f1;
  const RkvPolicy mean = Small(RkvPolicy::Mean(), 5000);
  EvictionInput six = f1.Input(5);
  six.keys.rows = six.keys.rows.first(6);
  std::vector<float> r = MeanCosines(MakePanels(six.keys));
  EXPECT_THAT(r,
              Digits({.069036, .402369, .402369, -.402369, .402369, .402369}));
  r.resize(16);
  SoftmaxInPlace(r.data(), 6);
  r.resize(6);

  EXPECT_THAT(r,
              Digits({.138762, .193658, .193658, .086605, .193658, .193658}));
  EXPECT_THAT(Candidates(mean, f1), Digits({-.016481, -.016042, -.030995,
                                            .027014, -.01095, -.025491}));
  EXPECT_THAT(DecideEviction(mean, f1.Input(5))->kept,
              ElementsAre(1, 3, 4, 6, 7));
}

TEST(RkvPolicyTest, TheDefaultsAreThoseOfTheSources) {
  const RkvPolicy official = RkvPolicy::Official();
  const RkvPolicy mean = RkvPolicy::Mean();

  EXPECT_EQ(official.lambda, 1000);
  EXPECT_EQ(official.window.window, 8);
  EXPECT_EQ(official.window.kernel, 7);
  EXPECT_EQ(official.threshold, 5000);
  EXPECT_EQ(mean.lambda, 5000);
  EXPECT_EQ(mean.window.window, 64);
  EXPECT_EQ(mean.window.kernel, 5);
}

// Plain double arithmetic over the whole matrix.
std::vector<double> PlainMeans(RandomHead& head, int64_t rows, int dim,
                               bool forgive) {
  const auto cosine = [&](int64_t i, int64_t j) {
    double dot = 0, a = 0, b = 0;
    for (int c = 0; c < dim; ++c) {
      const double x = head.key(i)[c], y = head.key(j)[c];
      dot += x * y;
      a += x * x;
      b += y * y;
    }
    return dot / ((std::sqrt(a) + 1e-8) * (std::sqrt(b) + 1e-8));
  };
  std::vector<double> means(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<double> row;
    for (int64_t j = 0; j < rows; ++j) row.push_back(i == j ? 0 : cosine(i, j));
    int64_t last = rows - 1;
    while (last > 0 && !(row[static_cast<size_t>(last)] > .2)) --last;
    if (forgive) row[static_cast<size_t>(last)] = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      means[j] += row[j] / static_cast<double>(rows);
    }
  }
  return means;
}

TEST(RkvPolicyTest, TheMeansAgreeWithPlainArithmetic) {
  RandomHead head(21, 150, 32, 1);
  const std::vector<float> forgiving = ForgivingMeanCosines(head.Keys(), .2f);
  const std::vector<float> mean = MeanCosines(head.Keys());

  EXPECT_THAT(forgiving, Digits(PlainMeans(head, 150, 32, true), 1e-6));
  EXPECT_THAT(mean, Digits(PlainMeans(head, 150, 32, false), 1e-6));
}

TEST(RkvPolicyTest, ABrokenKeyIsKeptAndNobodysCopy) {
  RandomHead head(22, 100, 16, 8);
  head.key(40)[2] = std::nanf("");
  const std::vector<float> means = ForgivingMeanCosines(head.Keys(), .5f);
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_EQ(std::isnan(means[i]), i == 40) << i;
  }

  const auto decision = DecideEviction(RkvPolicy::Official(), head.Input(30));

  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_TRUE(std::count(decision->kept.begin(), decision->kept.end(), 40) > 0);
  // The maximum pool of 7 spreads it.
  EXPECT_EQ(decision->num_non_finite, 7);
}

}  // namespace
}  // namespace farkv
