#include "memory_node/directory/lease_sweeper.h"

#include "absl/synchronization/notification.h"
#include "tests/unit/memory_node/directory_fixture.h"

namespace farkv {
namespace {

class LeaseSweeperTest : public DirectoryFixture {};

TEST_F(LeaseSweeperTest, APokedSweeperReportsSessionsWhoseLeaseRanOut) {
  absl::Notification revoked;
  LeaseSweeper sweeper(directory_, clock_,
                       [&](const std::vector<RevokedSession>& sessions) {
                         if (sessions.empty()) return;
                         EXPECT_EQ(sessions[0].id, TestSession(1));
                         EXPECT_EQ(sessions[0].tenant, "tenant");
                         revoked.Notify();
                       });
  Open();
  clock_.Advance(absl::Seconds(5));

  sweeper.Poke();

  EXPECT_TRUE(revoked.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

TEST_F(LeaseSweeperTest, ASweeperWithNothingToDoStopsAtOnce) {
  LeaseSweeper sweeper(directory_, clock_,
                       [](const std::vector<RevokedSession>&) {});
}

}  // namespace
}  // namespace farkv
