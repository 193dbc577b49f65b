// The numbers are those of fixture F1 in ALGORITHMS 0.5, 4.1 and 4.2.
#include "common/policy/window_mass.h"

#include "common/policy/panel_math.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using testing::Digits;
using ::testing::ElementsAreArray;
using testing::F1;
using testing::Head;
using testing::RandomHead;

std::vector<float> CausalRow(int head, int query) {
  F1 f1;
  f1.Only(head);
  const HeadPanels keys = f1.Keys();
  std::vector<float> logits(static_cast<size_t>(2 * keys.padded()));
  MultiplyPanels(f1.Window().data.data(), 2, keys, logits.data());
  for (float& x : logits) x *= f1.Window().scale;
  float* row = logits.data() + query * keys.padded();
  SoftmaxInPlace(row, 7 + query);
  return std::vector<float>(row, row + 7 + query);
}

TEST(WindowMassTest, TheFixturesCausalSoftmaxRows) {
  EXPECT_THAT(CausalRow(0, 0), Digits({.324116, .078798, .159812, .038853,
                                       .159812, .078798, .159812}));
  EXPECT_THAT(CausalRow(0, 1), Digits({.191355, .094351, .191355, .022938,
                                       .191355, .191355, .094351, .022938}));
  EXPECT_THAT(CausalRow(1, 0), Digits({.075771, .153673, .153673, .075771,
                                       .153673, .311667, .075771}));
  EXPECT_THAT(CausalRow(1, 1), Digits({.021328, .177925, .087729, .177925,
                                       .087729, .360851, .043256, .043256}));
}

TEST(WindowMassTest, TheOfficialSumsPerQueryHeadAndTheirPool) {
  F1 f1;
  f1.Only(0);
  const std::vector<float> a = CausalWindowSums(f1.Window(), f1.Keys(), 6);
  f1.Only(1);
  const std::vector<float> b = CausalWindowSums(f1.Window(), f1.Keys(), 6);

  EXPECT_THAT(a,
              Digits({.515471, .173149, .351167, .061791, .351167, .270153}));
  EXPECT_THAT(PoolAverage(a, 3),
              Digits({.22954, .346596, .195369, .254708, .227704, .207107}));
  EXPECT_THAT(b, Digits({.0971, .331598, .241402, .253696, .241402, .672518}));
  EXPECT_THAT(PoolAverage(b, 3),
              Digits({.142899, .223367, .275565, .2455, .389205, .30464}));
}

TEST(WindowMassTest, TheMassOfKvpress) {
  const F1 f1;
  const std::vector<float> sums = CausalWindowSums(f1.Window(), f1.Keys(), 6);

  EXPECT_THAT(MeanPooledMass(sums, f1.Window(), 3),
              Digits({.09311, .142491, .117734, .125052, .154227, .127937}));
}

TEST(WindowMassTest, TheMassOfVaseWithAndWithoutPool) {
  const F1 f1;
  const std::vector<float> sums =
      CandidateWindowSums(f1.Window(), f1.Keys(), 6);

  EXPECT_THAT(MeanPooledMass(sums, f1.Window(), 1),
              Digits({.17697, .14043, .167325, .087247, .167325, .260703}));
  EXPECT_THAT(MeanPooledMass(sums, f1.Window(), 3),
              Digits({.1058, .161575, .131667, .140632, .171758, .142676}));
}

TEST(WindowMassTest, TheMassOfRkvBeforeAndAfterItsPool) {
  const F1 f1;
  std::vector<float> mass = GroupMaxWindowSums(f1.Window(), f1.Keys(), 6);
  for (float& m : mass) m /= 2;

  EXPECT_THAT(mass,
              Digits({.234603, .115675, .166509, .082101, .166509, .234603}));
  EXPECT_THAT(PoolMax(mass, 3),
              Digits({.234603, .234603, .166509, .166509, .234603, .234603}));
}

// ALGORITHMS 1.1, on the same rows: one layer, two heads, both queries.
TEST(WindowMassTest, TheCumulativeScoresAreTheMeanOverHeads) {
  const F1 f1;
  const std::vector<float> sums = CausalWindowSums(f1.Window(), f1.Keys(), 8);
  std::vector<float> scores(8), per_query(8);
  for (size_t i = 0; i < 8; ++i) {
    scores[i] = (sums[i] + sums[8 + i]) / 2;
    per_query[i] = scores[i] / (i < 7 ? 2.0f : 1.0f);
  }

  EXPECT_THAT(scores, Digits({.306286, .252373, .296284, .157744, .296284,
                              .471336, .186595, .033097}));
  EXPECT_THAT(per_query, Digits({.153143, .126187, .148142, .078872, .148142,
                                 .235668, .093298, .033097}));
}

TEST(WindowMassTest, EveryQueryAddsOne) {
  const RandomHead head(9, 100, 16, 8);
  double sum = 0;
  for (const float m : CausalWindowSums(head.Window(), head.Keys(), 100)) {
    sum += m;
  }

  EXPECT_NEAR(sum, 16, 1e-4);
}

TEST(WindowMassTest, ABrokenKeySpoilsItselfOnly) {
  RandomHead head(10, 60, 16, 8);
  const std::vector<float> whole =
      CandidateWindowSums(head.Window(), head.Keys(), 52);
  head.key(20)[3] = std::nanf("");
  const std::vector<float> broken =
      CandidateWindowSums(head.Window(), head.Keys(), 52);

  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(std::isnan(broken[i]), i % 52 == 20) << i;
    if (i % 52 == 20) continue;
    EXPECT_GE(broken[i], whole[i]) << i;
  }
}

TEST(WindowMassTest, ABrokenQueryAddsNothing) {
  RandomHead whole(11, 40, 16, 2);
  std::vector<float> queries(whole.Window().data.begin(),
                             whole.Window().data.end());
  RandomHead head(11, 40, 16, 2);
  queries[0] = std::nanf("");
  head.SetQueries(2, 2, queries);
  double sum = 0;

  for (const float m : CandidateWindowSums(head.Window(), head.Keys(), 38)) {
    sum += m;
  }

  EXPECT_NEAR(sum, 3, 1e-5);
}

TEST(WindowMassTest, EveryTargetHasTheSameBits) {
  const RandomHead head(12, 210, 64, 8);
  std::vector<float> first;
  ForEachHighwayTarget([&] {
    std::vector<float> all = CausalWindowSums(head.Window(), head.Keys(), 202);
    const auto add = [&](const std::vector<float>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    add(CandidateWindowSums(head.Window(), head.Keys(), 202));
    add(GroupMaxWindowSums(head.Window(), head.Keys(), 202));
    if (first.empty()) first = all;
    EXPECT_THAT(all, ElementsAreArray(first));
  });
}

TEST(PoolTest, TheAverageCountsZerosBeyondTheEnds) {
  const std::vector<float> in = {3, 6, 9};

  EXPECT_THAT(PoolAverage(in, 3), Digits({3, 6, 5}));
  EXPECT_THAT(PoolAverage(in, 5), Digits({3.6, 3.6, 3.6}));
  EXPECT_THAT(PoolMax(std::vector<float>{-3, -6, -9}, 3), Digits({-3, -3, -6}));
}

}  // namespace
}  // namespace farkv
