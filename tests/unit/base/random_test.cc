#include "common/base/random.h"

#include <set>

#include "gtest/gtest.h"

namespace farkv {
namespace {

// ALGORITHMS 0.3 gives these outputs of splitmix64 from state 0.
TEST(SplitMix64Test, AgreesWithThePublishedSequence) {
  EXPECT_EQ(SplitMix64At(0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(SplitMix64At(0, 1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(SplitMix64At(0, 2), 0x06c45d188009454fu);
  EXPECT_EQ(SplitMix64At(0, 3), 0xf88bb8a8724c81ecu);
}

TEST(ToUnitTest, AgreesWithThePublishedSequence) {
  EXPECT_NEAR(ToUnit(SplitMix64At(0, 0)), .883310808, 5e-10);
  EXPECT_NEAR(ToUnit(SplitMix64At(0, 1)), .431527997, 5e-10);
  EXPECT_NEAR(ToUnit(SplitMix64At(0, 2)), .026433772, 5e-10);
  EXPECT_NEAR(ToUnit(SplitMix64At(0, 3)), .970881978, 5e-10);
}

TEST(ToUnitTest, NeverReachesZeroOrOne) {
  EXPECT_GT(ToUnit(0), 0.0);
  EXPECT_LT(ToUnit(~uint64_t{0}), 1.0);
}

TEST(CounterDrawTest, DependsOnEveryCoordinateItsPlaceAndTheSeed) {
  const std::set<uint64_t> draws = {
      CounterDraw(1, {}),     CounterDraw(1, {0}),       CounterDraw(1, {2, 3}),
      CounterDraw(1, {3, 2}), CounterDraw(1, {2, 3, 0}), CounterDraw(2, {2, 3}),
      CounterDraw(1, {2, 4})};

  EXPECT_EQ(draws.size(), 7u);
}

TEST(CounterDrawTest, IsAFunctionOfItsCoordinates) {
  EXPECT_EQ(CounterDraw(9, {1, 2, 3}), CounterDraw(9, {1, 2, 3}));
}

}  // namespace
}  // namespace farkv
