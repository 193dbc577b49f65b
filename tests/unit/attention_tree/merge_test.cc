#include "common/attention_tree/merge.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/attention_tree/attention_exp.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/highway_targets.h"

namespace farkv {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::Eq;

constexpr float kEmpty = -std::numeric_limits<float>::infinity();
constexpr int kDim = 16;

struct Partials {
  explicit Partials(int num_heads = 1)
      : heads(num_heads),
        m(static_cast<size_t>(num_heads), kEmpty),
        l(static_cast<size_t>(num_heads), 0.0f),
        out(static_cast<size_t>(num_heads) * kDim, 0.0f) {}

  PartialView View() { return {m.data(), l.data(), out.data()}; }
  friend bool operator==(const Partials&, const Partials&) = default;

  int heads;
  std::vector<float> m, l, out;
};

Partials Random(int heads, uint64_t seed) {
  Partials p(heads);
  uint64_t n = 0;
  auto draw = [&] {
    return static_cast<float>(ToUnit(SplitMix64At(seed, n++)));
  };
  for (float& m : p.m) m = 20.0f * draw() - 10.0f;
  for (float& l : p.l) l = 1.0f + 63.0f * draw();
  for (float& o : p.out) o = 2.0f * draw() - 1.0f;
  return p;
}

Partials Merged(Partials left, Partials right) {
  MergePartials(left.heads, kDim, left.View(), right.View());
  return left;
}

// A partial as ALGORITHMS 12.1 prints one: lse and the normalised o.
Partials FromLse(float lse, float o0, float o1) {
  Partials p;
  p.m[0] = lse;
  p.l[0] = 1.0f;
  p.out[0] = o0;
  p.out[1] = o1;
  return p;
}

TEST(MergeTest, GivesTheFixturesFullAttention) {
  Partials all = Merged(FromLse(2.327728f, 0.438443f, 0.042891f),
                        FromLse(2.419546f, 0.528804f, 0.174536f));

  EXPECT_NEAR(all.m[0] + std::log(all.l[0]), 3.0678375, 1e-6);
  NormalizePartials(1, kDim, all.View(), all.out.data());
  EXPECT_NEAR(all.out[0], 0.4856962, 1e-6);
  EXPECT_NEAR(all.out[1], 0.1117337, 1e-6);
}

TEST(MergeTest, AnEmptySideLeavesTheOthersBits) {
  Partials some = Random(5, 1);
  some.out[3] = -0.0f;

  const Partials right_empty = Merged(some, Partials(5));
  const Partials left_empty = Merged(Partials(5), some);

  EXPECT_EQ(right_empty, some);
  EXPECT_EQ(left_empty, some);
  EXPECT_TRUE(std::signbit(left_empty.out[3]));
  EXPECT_TRUE(std::signbit(right_empty.out[3]));
}

TEST(MergeTest, TwoEmptySidesStayEmptyAndAreNeverNan) {
  Partials none = Merged(Partials(3), Partials(3));

  EXPECT_THAT(none.m, Each(Eq(kEmpty)));
  EXPECT_THAT(none.l, Each(Eq(0.0f)));
  NormalizePartials(3, kDim, none.View(), none.out.data());
  EXPECT_THAT(none.out, Each(Eq(0.0f)));
}

TEST(MergeTest, HasTheBitsOfTheWrittenFormulaUnderEveryHighwayTarget) {
  // 19 heads: one full chunk of weights and a rest.
  constexpr int kHeads = 19;
  const Partials left = Random(kHeads, 2);
  const Partials right = Random(kHeads, 3);
  Partials want = left;
  for (size_t h = 0; h < kHeads; ++h) {
    const float m = std::max(left.m[h], right.m[h]);
    const float wl = AttentionExp(left.m[h] - m);
    const float wr = AttentionExp(right.m[h] - m);
    want.m[h] = m;
    want.l[h] = left.l[h] * wl + right.l[h] * wr;
    for (size_t i = h * kDim; i < (h + 1) * kDim; ++i) {
      want.out[i] = left.out[i] * wl + right.out[i] * wr;
    }
  }

  ForEachHighwayTarget([&] {
    const Partials got = Merged(left, right);
    EXPECT_THAT(got.m, ElementsAreArray(want.m));
    EXPECT_THAT(got.l, ElementsAreArray(want.l));
    EXPECT_THAT(got.out, ElementsAreArray(want.out));
  });
}

TEST(MergeTest, ManyHeadsGetTheBitsOfEachAlone) {
  constexpr int kHeads = 33;
  const Partials left = Random(kHeads, 4);
  const Partials right = Random(kHeads, 5);
  Partials all = left;
  MergePartials(kHeads, kDim, all.View(), Partials(right).View());

  for (size_t h = 0; h < kHeads; ++h) {
    auto head = [h](const Partials& p) {
      Partials one;
      one.m[0] = p.m[h];
      one.l[0] = p.l[h];
      std::copy_n(p.out.begin() + static_cast<ptrdiff_t>(h * kDim), kDim,
                  one.out.begin());
      return one;
    };
    EXPECT_EQ(Merged(head(left), head(right)), head(all)) << h;
  }
}

}  // namespace
}  // namespace farkv
