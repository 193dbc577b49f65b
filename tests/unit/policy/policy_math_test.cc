#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "common/policy/draws.h"
#include "common/policy/logarithm.h"
#include "common/policy/panel_math.h"
#include "common/policy/rotation.h"
#include "tests/testing/highway_targets.h"
#include "tests/unit/policy/head_fixture.h"

namespace farkv {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::F1;
using testing::RandomHead;

TEST(NaturalLogTest, StaysWithinItsStatedError) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200000; ++i) {
    const double x =
        std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1.0p-52,
                   static_cast<int>(random() % 2040) - 1020);
    const double want = std::log(x);
    ASSERT_LE(std::abs(NaturalLog(x) - want), 4e-16 * std::abs(want)) << x;
  }
}

TEST(NaturalLogTest, StaysWithinItsStatedErrorNearOne) {
  for (int i = 1; i < 1000; ++i) {
    const double x = 1 - i * 1e-5;
    ASSERT_LE(std::abs(NaturalLog(x) - std::log(x)),
              4e-16 * std::abs(std::log(x)))
        << x;
  }
  EXPECT_EQ(NaturalLog(1 - 0x1p-53), -0x1p-53 - 0x1p-107);
}

TEST(NaturalLogTest, IsExactAtItsEnds) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(NaturalLog(1), 0);
  EXPECT_EQ(NaturalLog(0), -kInfinity);
  EXPECT_EQ(NaturalLog(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(NaturalLog(-1)));
  EXPECT_TRUE(std::isnan(NaturalLog(std::nan(""))));
  EXPECT_NEAR(NaturalLog(0x1p-1074), -1074 * std::numbers::ln2, 1e-12);
}

// Frozen: a worker and a node of another build must agree.
TEST(NaturalLogTest, KeepsItsBits) {
  EXPECT_EQ(NaturalLog(0.1), -0x1.26bb1bbb55515p+1);
  EXPECT_EQ(NaturalLog(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(NaturalLog(0.883310808), -0x1.fc395e9b3f769p-4);
}

TEST(SineAndCosineTest, StaysWithinItsStatedError) {
  for (double x = -1048576; x < 1048576; x += 17.23) {
    const auto [sine, cosine] = SineAndCosine(x);
    ASSERT_NEAR(sine, std::sin(x), 1e-15) << x;
    ASSERT_NEAR(cosine, std::cos(x), 1e-15) << x;
  }
}

// Frozen; the same chain of splitmix64 was computed by other code.
TEST(PolicyDrawsTest, KeepTheirBits) {
  const PolicyDraws draws{
      .seed = 1, .request = 2, .layer = 3, .kv_head = 4, .event = 5};

  EXPECT_EQ(draws.Unit(6), 0.99382762142327352);
  EXPECT_EQ(draws.Unit(6, 1), 0.33177971114055688);
  EXPECT_EQ(PolicyDraws{}.Unit(0), 0.038016437396753811);
}

TEST(PolicyDrawsTest, DependOnEveryCoordinate) {
  const PolicyDraws draws{
      .seed = 1, .request = 2, .layer = 3, .kv_head = 4, .event = 5};
  PolicyDraws seed = draws, request = draws, layer = draws, head = draws,
              event = draws;
  seed.seed = request.request = layer.layer = head.kv_head = event.event = 9;

  for (const PolicyDraws& other : {seed, request, layer, head, event}) {
    EXPECT_NE(other.Unit(6), draws.Unit(6));
  }
  EXPECT_NE(draws.Unit(7), draws.Unit(6));
  EXPECT_EQ(head.SharedByHeads().Unit(6), draws.SharedByHeads().Unit(6));
  EXPECT_EQ(layer.SharedByLayersAndHeads().Unit(6),
            draws.SharedByLayersAndHeads().Unit(6));
}

TEST(NormalProjectionTest, HasMeanZeroAndVarianceOneOverRank) {
  const std::vector<float> g = NormalProjection({.seed = 7}, 20, 5000);
  double sum = 0, squares = 0, fourths = 0;
  for (const double x : g) {
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  const auto n = static_cast<double>(g.size());

  EXPECT_EQ(g.size(), 100000u);
  EXPECT_NEAR(sum / n, 0, .003);
  EXPECT_NEAR(squares / n * 20, 1, .02);
  EXPECT_NEAR(fourths / n * 400, 3, .15);
}

TEST(NormalProjectionTest, IsOneForAllHeadsOfALayer) {
  const std::vector<float> head = NormalProjection({.kv_head = 1}, 3, 5);

  EXPECT_EQ(head, NormalProjection({.kv_head = 2}, 3, 5));
  EXPECT_NE(head, NormalProjection({.layer = 1}, 3, 5));
  EXPECT_NE(head, NormalProjection({.event = 1}, 3, 5));
}

// Scalar code in the stated order of operations.
std::vector<float> ScalarProducts(const std::vector<float>& left,
                                  const HeadPanels& panels) {
  const auto dim = static_cast<size_t>(panels.dim);
  std::vector<float> out;
  for (size_t r = 0; r < left.size() / dim; ++r) {
    for (int64_t i = 0; i < panels.padded(); ++i) {
      float sum = 0;
      for (size_t c = 0; c < dim; ++c) {
        const float x =
            panels.panel(i / 16)[c * 16 + static_cast<size_t>(i) % 16];
        sum = sum + left[r * dim + c] * x;
      }
      out.push_back(sum);
    }
  }
  return out;
}

TEST(PanelMathTest, EveryTargetHasTheBitsOfScalarCode) {
  const RandomHead head(1, 77, 48, 1);
  const HeadPanels keys = head.Keys();
  std::mt19937_64 random(2);
  const std::vector<float> left = testing::RandomFloats(random, 7 * 48);
  const std::vector<float> products = ScalarProducts(left, keys);
  std::vector<float> projected(static_cast<size_t>(keys.padded()));
  for (size_t r = 0; r < 7; ++r) {
    for (size_t i = 0; i < projected.size(); ++i) {
      const float x = products[r * projected.size() + i];
      projected[i] = projected[i] + x * x;
    }
  }

  ForEachHighwayTarget([&] {
    std::vector<float> out(products.size());
    MultiplyPanels(left.data(), 7, keys, out.data());
    EXPECT_EQ(out, products);
    EXPECT_EQ(ProjectedNorms(left, keys), projected);
  });
}

// Of every function, with a NaN, an infinity and a length that is no multiple
// of 16 among the rows.
TEST(PanelMathTest, EveryTargetHasTheSameBits) {
  RandomHead head(3, 203, 32, 1);
  head.key(5)[3] = std::nanf("");
  head.key(6)[0] = HUGE_VALF;
  const HeadPanels keys = head.Keys();
  const auto bits = [](const std::vector<float>& x, int64_t count) {
    std::vector<uint32_t> out;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      out.push_back(std::isnan(x[i]) ? 0x7fc00000u
                                     : std::bit_cast<uint32_t>(x[i]));
    }
    return out;
  };
  std::vector<std::vector<uint32_t>> first;

  ForEachHighwayTarget([&] {
    std::vector<float> logits(static_cast<size_t>(keys.padded()));
    const std::vector<float> one(32, .25f);
    MultiplyPanels(one.data(), 1, keys, logits.data());
    SoftmaxInPlace(logits.data(), keys.count);
    const std::vector<std::vector<uint32_t>> all = {
        bits(SquaredNorms(keys), 203), bits(Ranges(keys), 203),
        bits(logits, keys.padded())};
    if (first.empty()) first = all;
    EXPECT_EQ(all, first);
  });
}

TEST(PanelMathTest, RangesOfTheFixture) {
  const F1 f1;
  std::vector<float> ranges = Ranges(f1.Values());
  ranges.resize(8);

  EXPECT_THAT(ranges, testing::Digits({0, 2, 0, 16, .1, 2, 2, .3}));
}

TEST(PanelMathTest, ANaNElementMakesTheRangeNaNWhereverItIs) {
  for (int c = 0; c < 16; ++c) {
    RandomHead head(4, 20, 16, 1);
    head.value(17)[c] = std::nanf("");
    const std::vector<float> ranges = Ranges(head.Values());

    EXPECT_TRUE(std::isnan(ranges[17]));
    EXPECT_FALSE(std::isnan(ranges[16]));
  }
}

TEST(SoftmaxTest, ABrokenLogitIsNaNAndTakesNoPart) {
  std::vector<float> x = {0, std::nanf(""), std::log(3.0f), HUGE_VALF,
                          -HUGE_VALF};
  x.resize(16, 99);

  EXPECT_TRUE(SoftmaxInPlace(x.data(), 5));

  EXPECT_NEAR(x[0], .25, 1e-6);
  EXPECT_TRUE(std::isnan(x[1]));
  EXPECT_NEAR(x[2], .75, 1e-6);
  EXPECT_TRUE(std::isnan(x[3]));
  EXPECT_EQ(x[4], 0);
  EXPECT_EQ(x[5], 0);
}

TEST(SoftmaxTest, WithoutAFiniteLogitAllIsZero) {
  std::vector<float> x(16, std::nanf(""));

  EXPECT_FALSE(SoftmaxInPlace(x.data(), 3));
  EXPECT_THAT(x, Each(0.0f));
}

TEST(HeadVectorsTest, Bf16RowsAreWidenedFromAnyAddress) {
  std::vector<std::byte> bytes(2 * 2 * 3 + 1);
  for (size_t i = 0; i < 6; ++i) {
    const uint16_t bits = FloatToBf16(static_cast<float>(i) * .5f);
    std::memcpy(bytes.data() + 1 + 2 * i, &bits, 2);
  }
  std::vector<const std::byte*> rows;
  AppendRows(bytes.data() + 1, 4, 3, rows);

  const HeadPanels panels = MakePanels({rows, 2, DType::kBf16});

  EXPECT_EQ(panels.padded(), 16);
  const std::vector<float> first(panels.data.begin(), panels.data.begin() + 4);
  const std::vector<float> second(panels.data.begin() + 16,
                                  panels.data.begin() + 20);
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(second, ElementsAre(.5f, 1.5f, 2.5f, 0));
}

}  // namespace
}  // namespace farkv
