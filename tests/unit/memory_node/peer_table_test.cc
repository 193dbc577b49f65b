#include "memory_node/data/peer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farkv {
namespace {

TokenOwner Owner(const char* worker = "worker") {
  TokenOwner owner;
  owner.tenant = "tenant";
  owner.worker_id = worker;
  return owner;
}

TEST(PeerTableTest, APeerIsItsTenantUntilItIsRemoved) {
  PeerTable peers;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(peers.Tenant(PeerId{1}, start).status().code(),
            absl::StatusCode::kPermissionDenied);

  peers.Add(PeerId{1}, Owner(), start);
  EXPECT_EQ(peers.Tenant(PeerId{1}, start + absl::Seconds(3)).value(),
            "tenant");
  ASSERT_EQ(peers.List().size(), 1u);
  EXPECT_EQ(peers.List()[0].worker_id, "worker");
  EXPECT_EQ(peers.List()[0].last_message, start + absl::Seconds(3));

  peers.Remove(PeerId{1});
  EXPECT_FALSE(peers.Tenant(PeerId{1}, start).ok());
}

TEST(PeerTableTest, APeersBytesAndItsWorkersMapAreShown) {
  PeerTable peers;
  const absl::Time start = absl::UnixEpoch();
  peers.Note(PeerId{1}, start);
  peers.Count(PeerId{1}, 0, 100);  // its hello
  for (uint64_t id = 1; id <= 3; ++id) {
    const char* worker = id == 2 ? "other" : "worker";
    peers.Add(PeerId{id}, Owner(worker), start);
  }

  peers.Count(PeerId{1}, 2000, 50);
  peers.Count(PeerId{7}, 1, 1);  // gone
  peers.NoteMapped(Owner());

  ASSERT_EQ(peers.List().size(), 3u);
  for (const PeerReport& peer : peers.List()) {
    EXPECT_EQ(peer.bytes_sent, peer.id == 1 ? 2000u : 0u);
    EXPECT_EQ(peer.bytes_received, peer.id == 1 ? 150u : 0u);
    EXPECT_EQ(peer.mapped, peer.id != 2);
  }
}

TEST(PeerTableTest, SilentPeersAndThoseWithoutAHelloAreTaken) {
  PeerTable peers;
  const PeerLimits limits;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(peers.TakeSilent(limits, start).next, absl::InfiniteFuture());
  EXPECT_TRUE(peers.Note(PeerId{1}, start));
  EXPECT_TRUE(peers.Note(PeerId{2}, start));
  peers.Add(PeerId{1}, Owner(), start);

  // However much it says: no hello, no connection.
  EXPECT_FALSE(peers.Note(PeerId{2}, start + limits.hello / 2));
  EXPECT_EQ(peers.TakeSilent(limits, start).next, start + limits.hello);
  const auto silent = peers.TakeSilent(limits, start + limits.hello);
  EXPECT_THAT(silent.unproven, ::testing::ElementsAre(PeerId{2}));
  EXPECT_TRUE(silent.peers.empty());
  EXPECT_EQ(silent.next, start + limits.silence);

  EXPECT_FALSE(peers.Note(PeerId{1}, start + absl::Seconds(1)));
  EXPECT_TRUE(peers.TakeSilent(limits, start + limits.silence).peers.empty());
  EXPECT_THAT(
      peers.TakeSilent(limits, start + absl::Seconds(1) + limits.silence).peers,
      ::testing::ElementsAre(PeerId{1}));
  EXPECT_TRUE(peers.List().empty());
}

TEST(PeerTableTest, OfTooManyWithoutAHelloTheOneThatIsThereForLongestGoes) {
  PeerTable peers;
  PeerLimits limits;
  limits.max_unproven = 2;
  const absl::Time start = absl::UnixEpoch();
  peers.Note(PeerId{9}, start);
  peers.Add(PeerId{9}, {"tenant", "worker", absl::Seconds(7)}, start);
  for (uint64_t id = 1; id <= 2; ++id) {
    peers.Note(PeerId{id}, start + absl::Seconds(3 - id));
    EXPECT_EQ(peers.TakeExcess(limits), std::nullopt);
  }

  peers.Note(PeerId{3}, start + absl::Seconds(3));
  // What it says makes it no younger.
  peers.Note(PeerId{2}, start + absl::Seconds(4));

  EXPECT_EQ(peers.num_unproven(), 3u);
  EXPECT_EQ(peers.TakeExcess(limits), PeerId{2});
  EXPECT_EQ(peers.TakeExcess(limits), std::nullopt);
  EXPECT_EQ(peers.num_unproven(), 2u);
  EXPECT_EQ(peers.DataTimeout(PeerId{9}), absl::Seconds(7));
  EXPECT_EQ(peers.DataTimeout(PeerId{1}), absl::ZeroDuration());
  peers.Remove(PeerId{1});
  peers.Add(PeerId{3}, Owner(), start);
  EXPECT_EQ(peers.num_unproven(), 0u);
}

}  // namespace
}  // namespace farkv
