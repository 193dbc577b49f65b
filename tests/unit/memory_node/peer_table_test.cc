#include "memory_node/data/peer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farkv {
namespace {

TEST(PeerTableTest, APeerIsItsTenantUntilItIsRemoved) {
  PeerTable peers;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(peers.Tenant(PeerId{1}, start).status().code(),
            absl::StatusCode::kPermissionDenied);

  peers.Add(PeerId{1}, {"tenant", "worker"}, start);
  EXPECT_EQ(peers.Tenant(PeerId{1}, start + absl::Seconds(3)).value(),
            "tenant");
  ASSERT_EQ(peers.List().size(), 1u);
  EXPECT_EQ(peers.List()[0].worker_id, "worker");
  EXPECT_EQ(peers.List()[0].last_message, start + absl::Seconds(3));

  peers.Remove(PeerId{1});
  EXPECT_FALSE(peers.Tenant(PeerId{1}, start).ok());
}

TEST(PeerTableTest, SilentPeersAndThoseWithoutAHelloAreTaken) {
  PeerTable peers;
  const PeerLimits limits;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(peers.TakeSilent(limits, start).next, absl::InfiniteFuture());
  EXPECT_TRUE(peers.Note(PeerId{1}, start));
  EXPECT_TRUE(peers.Note(PeerId{2}, start));
  peers.Add(PeerId{1}, {"tenant", "worker"}, start);

  // However much it says: no hello, no connection.
  EXPECT_FALSE(peers.Note(PeerId{2}, start + limits.hello / 2));
  EXPECT_EQ(peers.TakeSilent(limits, start).next, start + limits.hello);
  const auto silent = peers.TakeSilent(limits, start + limits.hello);
  EXPECT_THAT(silent.peers, ::testing::ElementsAre(PeerId{2}));
  EXPECT_EQ(silent.next, start + limits.silence);

  EXPECT_FALSE(peers.Note(PeerId{1}, start + absl::Seconds(1)));
  EXPECT_TRUE(peers.TakeSilent(limits, start + limits.silence).peers.empty());
  EXPECT_THAT(
      peers.TakeSilent(limits, start + absl::Seconds(1) + limits.silence).peers,
      ::testing::ElementsAre(PeerId{1}));
  EXPECT_TRUE(peers.List().empty());
}

}  // namespace
}  // namespace farkv
