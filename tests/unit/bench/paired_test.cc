#include "bench/paired.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv::bench {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(RunRoundsTest, EveryContenderRunsOncePerRoundAndTheOrderTurns) {
  std::string order;
  const std::vector<Contender> contenders = {[&] {
                                               order += 'a';
                                               return 1.0;
                                             },
                                             [&] {
                                               order += 'b';
                                               return 2.0;
                                             },
                                             [&] {
                                               order += 'c';
                                               return 3.0;
                                             }};

  const auto seconds = RunRounds(3, contenders);

  EXPECT_EQ(order,
            "abc"
            "abc"
            "bca"
            "cab");  // the first round is dropped
  EXPECT_THAT(seconds, ElementsAre(ElementsAre(1.0, 1.0, 1.0),
                                   ElementsAre(2.0, 2.0, 2.0),
                                   ElementsAre(3.0, 3.0, 3.0)));
}

TEST(MedianTest, AnEvenCountTakesTheMiddleOfTheTwo) {
  EXPECT_EQ(Median({4.0, 1.0, 3.0}), 3.0);
  EXPECT_EQ(Median({4.0, 1.0, 3.0, 2.0}), 2.5);
}

TEST(SpreadTest, IsTheInterquartileRangeOverTheMedian) {
  EXPECT_EQ(Spread({5.0, 1.0, 2.0, 4.0, 3.0}), (4.0 - 2.0) / 3.0);
  EXPECT_EQ(Spread({1.0, 9.0}), 0.0);
}

TEST(CompareTest, ASlowMachineForOneRoundDoesNotMoveTheRatio) {
  const std::vector<double> seconds = {1.0, 10.0, 1.0};
  const std::vector<double> yardstick = {2.0, 20.0, 2.0};

  const Comparison result = Compare(seconds, yardstick);

  EXPECT_EQ(result.ratio, 2.0);
  EXPECT_EQ(result.seconds, 1.0);
  EXPECT_EQ(result.yardstick_seconds, 2.0);
}

TEST(CompareTest, TheRatioIsTheMedianOfTheRoundsNotTheRatioOfTheMedians) {
  const std::vector<double> seconds = {1.0, 2.0, 4.0};
  const std::vector<double> yardstick = {3.0, 2.0, 2.0};

  const Comparison result = Compare(seconds, yardstick);

  EXPECT_THAT(result.ratio, DoubleNear(1.0, 1e-12));
}

}  // namespace
}  // namespace farkv::bench
