#include "gpu_worker/tiering/node_rates.h"

#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class NodeRatesTest : public ::testing::Test {
 protected:
  // One fetch of `bytes` alone, at `rate` behind the round trip.
  void Fetch(uint64_t bytes, double rate) {
    rates_.FetchBegan();
    clock_.Advance(round_trip_ +
                   absl::Seconds(static_cast<double>(bytes) / rate));
    rates_.FetchEnded(bytes);
  }
  double Link() const { return rates_.Figures().link_bytes_per_second; }

  const absl::Duration round_trip_ = absl::Milliseconds(2);
  ManualClock clock_;
  NodeRates rates_{clock_};
};

TEST_F(NodeRatesTest, NothingIsKnownAtFirst) {
  const NodeFigures figures = rates_.Figures();
  EXPECT_EQ(figures.link_bytes_per_second, 0);
  EXPECT_EQ(figures.round_trip, absl::ZeroDuration());
  EXPECT_EQ(figures.attend_rows_per_second, 0);
}

TEST_F(NodeRatesTest, ARoundTripIsNoPartOfTheRate) {
  rates_.NoteRoundTrip(round_trip_);
  Fetch(256 << 10, 100e6);
  EXPECT_NEAR(Link(), 100e6, 1e3);
}

TEST_F(NodeRatesTest, OverlappingFetchesAreMeasuredTogether) {
  rates_.FetchBegan();
  rates_.FetchBegan();
  clock_.Advance(absl::Milliseconds(10));
  rates_.FetchEnded(512 << 10);
  clock_.Advance(absl::Milliseconds(10));
  rates_.FetchEnded(512 << 10);
  EXPECT_NEAR(Link(), kMiB / 0.02, 1);
}

// Prefetch never lets the link rest.
TEST_F(NodeRatesTest, ALinkThatIsNeverIdleIsMeasuredAllTheSame) {
  rates_.FetchBegan();
  for (int i = 0; i < 4; ++i) {
    rates_.FetchBegan();
    clock_.Advance(absl::Milliseconds(10));
    rates_.FetchEnded(kMiB);
  }
  EXPECT_NEAR(Link(), kMiB / 0.01, 1);
}

TEST_F(NodeRatesTest, SmallAndFailedFetchesSayNothing) {
  Fetch(1024, 1e3);
  EXPECT_EQ(Link(), 0);
  rates_.FetchBegan();
  rates_.FetchBegan();
  clock_.Advance(absl::Seconds(5));
  rates_.FetchEnded(0);
  rates_.FetchEnded(kMiB);
  EXPECT_EQ(Link(), 0);
}

TEST_F(NodeRatesTest, OneSampleChangesNothingAndThreeDo) {
  for (int i = 0; i < 5; ++i) Fetch(kMiB, 1e9);
  Fetch(kMiB, 1e6);
  EXPECT_GT(Link(), 3e8);
  Fetch(kMiB, 1e6);
  Fetch(kMiB, 1e6);
  EXPECT_LT(Link(), 2e6);
}

TEST_F(NodeRatesTest, AttendingIsWhatIsLeftOfTheAnswersTime) {
  rates_.NoteRoundTrip(round_trip_);
  rates_.NoteProbe(kMiB, round_trip_ + absl::Seconds(kMiB / 100e6));
  // 30 answers of 100 KB together, 100,000 rows in 20 ms.
  rates_.NoteAttend(
      {30, 100'000, 100'000,
       30 * round_trip_ + absl::Milliseconds(1) + absl::Milliseconds(20)});
  EXPECT_NEAR(rates_.Figures().attend_rows_per_second, 5e6, 5e4);
}

TEST_F(NodeRatesTest, AnAnswerBoundsTheRoundTrip) {
  rates_.NoteRoundTrip(absl::Milliseconds(10));  // both ends were asleep
  rates_.NoteAttend({10, 1000, 0, absl::Milliseconds(20)});
  EXPECT_EQ(rates_.Figures().round_trip, absl::Milliseconds(2));
  EXPECT_GT(rates_.Figures().attend_rows_per_second, 0);
}

TEST_F(NodeRatesTest, WhatANodeTookLongAgoSaysNothing) {
  rates_.NoteAttend({1, 1000, 0, absl::Milliseconds(20)});
  clock_.Advance(absl::Minutes(6));
  EXPECT_EQ(rates_.Figures().attend_rows_per_second, 0);
}

TEST_F(NodeRatesTest, AProbeIsDueAtFirstAndWhenNothingWasMeasured) {
  EXPECT_TRUE(rates_.TakeProbe());
  EXPECT_FALSE(rates_.TakeProbe());
  rates_.NoteProbe(kMiB, absl::Milliseconds(10));
  clock_.Advance(absl::Seconds(7));
  EXPECT_FALSE(rates_.TakeProbe());
  Fetch(kMiB, 1e8);
  clock_.Advance(absl::Seconds(7));
  EXPECT_FALSE(rates_.TakeProbe());
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(rates_.TakeProbe());
}

TEST_F(NodeRatesTest, NoProbeGoesBesideAFetch) {
  rates_.FetchBegan();
  EXPECT_FALSE(rates_.TakeProbe());
  clock_.Advance(absl::Minutes(1));
  EXPECT_FALSE(rates_.TakeProbe());
}

TEST_F(NodeRatesTest, AChangeIsLookedIntoAtOnceUntilItIsSure) {
  for (int i = 0; i < 5; ++i) Fetch(kMiB, 1e9);
  EXPECT_FALSE(rates_.TakeProbe());
  Fetch(kMiB, 1e6);
  int probes = 0;
  while (probes < 10 && rates_.TakeProbe()) {
    ++probes;
    rates_.NoteProbe(kMiB, absl::Seconds(1));
  }
  EXPECT_EQ(probes, 2);
  EXPECT_NEAR(Link(), kMiB, 1);
}

TEST_F(NodeRatesTest, ALinkThatWaversIsNotProbedForEver) {
  for (int i = 0; i < 5; ++i) Fetch(kMiB, 1e9);
  Fetch(kMiB, 1e6);
  int probes = 0;  // whose answers are lost
  while (probes < 10 && rates_.TakeProbe()) ++probes;
  EXPECT_EQ(probes, 4);
}

}  // namespace
}  // namespace farkv
