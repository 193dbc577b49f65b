#include "memory_node/data/peer_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr PeerId kFirst{1};
constexpr PeerId kSecond{2};

TEST(PeerSharesTest, OnePeerAloneMayHaveAll) {
  PeerShares shares("bytes", 100);
  EXPECT_TRUE(shares.TryTake(kFirst, 60).ok());
  EXPECT_TRUE(shares.TryTake(kFirst, 40).ok());

  const absl::Status refused = shares.TryTake(kFirst, 1);

  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("100 of 100 bytes are this peer's"));
  EXPECT_EQ(shares.total(), 100u);
}

TEST(PeerSharesTest, APeerThatTookAllRefusesItselfAndNoOther) {
  PeerShares shares("bytes", 100);
  ASSERT_TRUE(shares.TryTake(kFirst, 100).ok());

  EXPECT_TRUE(shares.TryTake(kSecond, 30).ok());
  EXPECT_TRUE(shares.TryTake(kSecond, 20).ok());
  EXPECT_FALSE(shares.TryTake(kSecond, 1).ok());
  EXPECT_FALSE(shares.TryTake(kFirst, 1).ok());

  shares.Give(kFirst, 100);
  EXPECT_TRUE(shares.TryTake(kSecond, 50).ok());
  EXPECT_EQ(shares.total(), 100u);
}

TEST(PeerSharesTest, OneThatHoldsNothingMayTakeMoreThanItsShareAtOnce) {
  PeerShares shares("bytes", 100);
  ASSERT_TRUE(shares.TryTake(kFirst, 100).ok());

  EXPECT_TRUE(shares.TryTake(kSecond, 80).ok());
}

TEST(PeerSharesTest, AllTogetherNeverHoldMoreThanTheCeiling) {
  PeerShares shares("bytes", 100);
  size_t taken = 0;
  for (uint64_t peer = 1; peer <= 1000; ++peer) {
    while (shares.TryTake(PeerId{peer}, 10).ok()) taken += 10;
  }

  EXPECT_EQ(taken, 400u);
  EXPECT_EQ(shares.total(), 400u);
}

TEST(PeerSharesTest, GreedyPeersLeaveAShareToTheNextOne) {
  PeerShares shares("bytes", 10000);
  for (uint64_t peer = 1; peer <= 28; ++peer) {
    while (shares.TryTake(PeerId{peer}, 1).ok()) {
    }
  }

  for (int i = 0; i < 10000 / 29; ++i) {
    ASSERT_TRUE(shares.TryTake(PeerId{29}, 1).ok());
  }
}

TEST(PeerSharesTest, WhatIsGivenBackIsForgotten) {
  PeerShares shares("bytes", 100);
  for (uint64_t peer = 1; peer <= 3; ++peer) {
    ASSERT_TRUE(shares.TryTake(PeerId{peer}, 10).ok());
    shares.Give(PeerId{peer}, 10);
  }
  EXPECT_EQ(shares.total(), 0u);

  // Nobody else counts for the share.
  EXPECT_TRUE(shares.TryTake(kFirst, 50).ok());
  EXPECT_TRUE(shares.TryTake(kFirst, 50).ok());
}

}  // namespace
}  // namespace farkv
