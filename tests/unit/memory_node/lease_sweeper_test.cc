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
                         if (sessions.empty()) return absl::InfiniteFuture();
                         EXPECT_EQ(sessions[0].id, TestSession(1));
                         EXPECT_EQ(sessions[0].tenant, "tenant");
                         revoked.Notify();
                         return absl::InfiniteFuture();
                       });
  Open();
  clock_.Advance(absl::Seconds(5));

  sweeper.Poke();

  EXPECT_TRUE(revoked.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

TEST_F(LeaseSweeperTest, ASweeperWithNothingToDoStopsAtOnce) {
  LeaseSweeper sweeper(directory_, clock_,
                       [](const std::vector<RevokedSession>&) {
                         return absl::InfiniteFuture();
                       });
}

TEST_F(LeaseSweeperTest, AWishForAnotherSweepIsHeard) {
  absl::Notification again;
  int sweeps = 0;
  LeaseSweeper sweeper(
      directory_, clock_, [&](const std::vector<RevokedSession>&) {
        if (++sweeps == 2) again.Notify();
        return sweeps < 2 ? clock_.Now() : absl::InfiniteFuture();
      });

  EXPECT_TRUE(again.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

}  // namespace
}  // namespace farkv
