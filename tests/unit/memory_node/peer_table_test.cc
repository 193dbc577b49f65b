#include "memory_node/data/peer_table.h"

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

}  // namespace
}  // namespace farkv
