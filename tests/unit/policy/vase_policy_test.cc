// The numbers are those of fixture F1 in ALGORITHMS 6 and 7.2.
#include "common/policy/vase_policy.h"

#include <map>

#include "common/policy/destruction_policy.h"
#include "common/policy/logarithm.h"
#include "common/policy/panel_math.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using testing::Digits;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::F1;
using testing::RandomHead;

std::vector<float> Products(const F1& f1, const std::vector<float>& g) {
  auto products = ProjectedProducts(f1.Input(5), g);
  EXPECT_TRUE(products.ok()) << products.status();
  products->resize(6);
  return *products;
}

// Three of the candidates, slot 0 forced.
std::vector<int64_t> BestThree(const std::vector<float>& products) {
  RankedRows ranked;
  for (size_t i = 0; i < products.size(); ++i) {
    ranked.rows.push_back({.position = static_cast<int64_t>(i),
                           .key = products[i],
                           .pinned = i == 0});
  }
  return ChooseRows(ranked, 3)->kept;
}

TEST(CurDkvPolicyTest, TheProductsOfTheFixture) {
  const F1 f1;
  const std::vector<float> identity = Products(f1, {1, 0, 0, 1});
  float sum = 0;
  for (const float p : identity) sum += p;
  std::vector<float> normalised = identity;
  for (float& p : normalised) p /= sum;

  EXPECT_THAT(identity, Digits({.08, 2, 1, 128, .82, 8}, 1e-5));
  EXPECT_THAT(normalised,
              Digits({.000572, .014296, .007148, .914939, .005861, .057184}));
  EXPECT_THAT(BestThree(identity), ElementsAre(0, 3, 5));
}

TEST(CurDkvPolicyTest, ARedrawChangesTheChoice) {
  const F1 f1;
  const std::vector<float> other = Products(f1, {1, 2});

  EXPECT_THAT(BestThree(Products(f1, {1, -1})), ElementsAre(0, 3, 5));
  EXPECT_THAT(other, Digits({.36, 4, 20.25, 64, 15.21, 16}, 1e-5));
  EXPECT_THAT(BestThree(other), ElementsAre(0, 2, 3));
}

TEST(CurDkvPolicyTest, KeepsItsProjectionWhereVaseDkvRedraws) {
  const RandomHead head(30, 300, 32, 1);
  EvictionInput input = head.Input(128);
  const auto cur = DecideEviction(CurDkvPolicy{}, input);
  const auto vase = DecideEviction(VaseDkvPolicy{}, input);
  input.draws.event += 1;
  const auto cur_next = DecideEviction(CurDkvPolicy{}, input);
  const auto vase_next = DecideEviction(VaseDkvPolicy{}, input);

  ASSERT_TRUE(cur.ok() && vase.ok()) << cur.status() << vase.status();
  EXPECT_EQ(cur->kept, cur_next->kept);
  EXPECT_NE(vase->kept, vase_next->kept);
  EXPECT_NE(vase->kept, cur->kept);
}

TEST(CurDkvPolicyTest, SinksAndBufferStayAtAnyProduct) {
  RandomHead head(31, 300, 32, 1);
  for (int64_t row : {0, 3, 236, 299}) {
    std::fill_n(head.value(row), 32, 0.0f);
  }

  const std::vector<int64_t> kept =
      DecideEviction(VaseDkvPolicy{}, head.Input(100))->kept;

  EXPECT_EQ(kept.size(), 100u);
  EXPECT_EQ(kept[3], 3);
  EXPECT_EQ(kept[36], 236);
  EXPECT_EQ(kept[99], 299);
}

TEST(SamplingKeyTest, TheFixturesKeys) {
  const std::map<int, std::pair<float, double>> rows = {{1, {.161575f, .90}},
                                                        {2, {.131667f, .35}},
                                                        {4, {.171758f, .50}},
                                                        {5, {.142676f, .20}}};
  std::vector<float> keys;
  std::vector<float> exponential;
  for (const auto& [row, weight_and_unit] : rows) {
    const auto [weight, unit] = weight_and_unit;
    keys.push_back(static_cast<float>(SamplingKey(weight, unit)));
    exponential.push_back(static_cast<float>(-NaturalLog(unit) / weight));
  }

  EXPECT_THAT(keys, Digits({.427582, -2.076097, -1.395154, -2.423064}, 5e-6));
  EXPECT_THAT(exponential,
              Digits({.652084, 7.973288, 4.035596, 11.280369}, 4e-5));
}

TEST(SamplingKeyTest, NoWeightIsLastAndABrokenOneIsNaN) {
  EXPECT_EQ(SamplingKey(0, .5), EvictionRow::kLastKey);
  EXPECT_TRUE(std::isnan(SamplingKey(-1, .5)));
  EXPECT_TRUE(std::isnan(SamplingKey(std::nanf(""), .5)));
  EXPECT_GT(SamplingKey(1e-30f, .5), -100);
}

VaseAttnVPolicy Small() {
  return {.window = {WindowScorer::kCandidateMean, 2, 3},
          .sinks = 1,
          .value_tokens = 2};
}

// Range picks {0, 3}; the drawn rows come from the others.
TEST(VaseAttnVPolicyTest, TheFixtureWithItsOwnDraws) {
  const F1 f1;
  const double units[] = {.10, .90, .35, .60, .50, .20};
  auto ranked = Small().Rank(f1.Input(5));
  ASSERT_TRUE(ranked.ok()) << ranked.status();
  ASSERT_EQ(ranked->num_by_measure, 1);
  const std::vector<float> mass = {.1058f,   .161575f, .131667f,
                                   .140632f, .171758f, .142676f};
  for (size_t i = 0; i < 6; ++i) {
    ranked->rows[i].key = SamplingKey(mass[i], units[i]);
  }

  EXPECT_THAT(ChooseRows(*ranked, 4)->kept, ElementsAre(0, 3, 6, 7));
  EXPECT_THAT(ChooseRows(*ranked, 5)->kept, ElementsAre(0, 1, 3, 6, 7));
  EXPECT_THAT(ChooseRows(*ranked, 6)->kept, ElementsAre(0, 1, 3, 4, 6, 7));
}

TEST(VaseAttnVPolicyTest, RanksByRangeAndByAKeyOfItsMassAndDraw) {
  const F1 f1;
  const std::vector<float> mass = {.1058f,   .161575f, .131667f,
                                   .140632f, .171758f, .142676f};
  const double ranges[] = {0, 2, 0, 16, .1, 2};

  const auto ranked = Small().Rank(f1.Input(5));

  ASSERT_TRUE(ranked.ok()) << ranked.status();
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(ranked->rows[i].measure, ranges[i], 1e-6);
    EXPECT_NEAR(ranked->rows[i].key,
                SamplingKey(mass[i], f1.draws.Unit(static_cast<int64_t>(i))),
                1e-5);
    EXPECT_EQ(ranked->rows[i].pinned, i == 0);
  }
}

// ALGORITHMS 7.2: w = (.5 .3 .2), two drawn.
TEST(VaseAttnVPolicyTest, PairsAreDrawnAsSequentialSamplingWould) {
  const float weights[] = {.5f, .3f, .2f};
  std::map<std::vector<int64_t>, int> pairs;
  int included[3] = {};
  constexpr int kDraws = 100000;
  for (int event = 0; event < kDraws; ++event) {
    const PolicyDraws draws{.event = static_cast<uint64_t>(event)};
    RankedRows ranked;
    for (int64_t i = 0; i < 3; ++i) {
      ranked.rows.push_back(
          {.position = i, .key = SamplingKey(weights[i], draws.Unit(i))});
    }
    const std::vector<int64_t> kept = ChooseRows(ranked, 2)->kept;
    ++pairs[kept];
    for (const int64_t i : kept) ++included[i];
  }
  const auto share = [](int count) { return count / double{kDraws}; };

  EXPECT_NEAR(share(pairs[{0, 1}]), .5142857, .0065);
  EXPECT_NEAR(share(pairs[{0, 2}]), .3250000, .0065);
  EXPECT_NEAR(share(pairs[{1, 2}]), .1607143, .0065);
  EXPECT_NEAR(share(included[0]), .8392857, .0065);
  EXPECT_NEAR(share(included[1]), .675, .0065);
  EXPECT_NEAR(share(included[2]), .4857143, .0065);
}

// P(first) of the fixture's four candidates.
TEST(VaseAttnVPolicyTest, TheFirstDrawIsProportionalToTheMass) {
  const float weights[] = {.161575f, .131667f, .171758f, .142676f};
  const double first[] = {.26589, .216673, .282648, .234789};
  int drawn[4] = {};
  constexpr int kDraws = 100000;
  for (int event = 0; event < kDraws; ++event) {
    const PolicyDraws draws{.request = 4,
                            .event = static_cast<uint64_t>(event)};
    RankedRows ranked;
    for (int64_t i = 0; i < 4; ++i) {
      ranked.rows.push_back(
          {.position = i, .key = SamplingKey(weights[i], draws.Unit(i))});
    }
    ++drawn[ChooseRows(ranked, 1)->kept[0]];
  }

  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(drawn[i] / double{kDraws}, first[i], .0065);
  }
}

TEST(VaseAttnVPolicyTest, AQuarterOfTheBudgetStaysForItsRange) {
  RandomHead head(33, 320, 32, 64);
  for (int64_t row = 100; row < 160; ++row) head.value(row)[0] = 100;
  std::vector<int64_t> expected;
  for (int64_t row = 100; row < 160; ++row) expected.push_back(row);

  const auto decision = DecideEviction(VaseAttnVPolicy{}, head.Input(256));

  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->kept.size(), 256u);
  // N_v = 64, of which the four sinks take their places.
  EXPECT_THAT(decision->kept, ::testing::IsSupersetOf(expected));
}

TEST(VaseAttnVPolicyTest, GivenMassDecidesAsItsOwnWindowDoes) {
  const RandomHead head(34, 320, 32, 64);
  EvictionInput input = head.Input(256);
  const auto own = DecideEviction(VaseAttnVPolicy{}, input);
  const auto mass =
      CandidateMass(input, VaseAttnVPolicy{}.window, "vase-attn-v");
  input.mass = *mass;
  input.window = {};
  input.keys = {};

  const auto given = DecideEviction(VaseAttnVPolicy{}, input);

  ASSERT_TRUE(own.ok() && given.ok()) << own.status() << given.status();
  EXPECT_THAT(given->kept, ElementsAreArray(own->kept));
}

TEST(VaseAttnVPolicyTest, RunsByBuffersOverTheBudget) {
  const VaseAttnVPolicy policy;

  EXPECT_FALSE(policy.IsDue({.generated = 9, .cached = 256, .budget = 256}));
  EXPECT_FALSE(policy.IsDue({.generated = 9, .cached = 319, .budget = 256}));
  EXPECT_TRUE(policy.IsDue({.generated = 9, .cached = 320, .budget = 256}));
  EXPECT_FALSE(policy.IsDue({.generated = 0, .cached = 320, .budget = 256}));
  EXPECT_FALSE(policy.IsDue({.generated = 9, .cached = 320, .budget = 257}));
  EXPECT_TRUE(policy.IsDue({.generated = 9, .cached = 321, .budget = 257}));
  EXPECT_FALSE(policy.IsDue({.generated = 9, .cached = 322, .budget = 257}));
  EXPECT_TRUE(policy.IsDue(
      {.generated = 9, .cached = 322, .budget = 257, .budget_grows = true}));
}

}  // namespace
}  // namespace farkv
