#include "common/async/deadline_queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::UnixEpoch();

TEST(DeadlineQueueTest, TakesTheExpiredEarliestFirst) {
  DeadlineQueue queue;
  queue.Add(kStart + absl::Seconds(3), 30);
  queue.Add(kStart + absl::Seconds(1), 10);
  queue.Add(kStart + absl::Seconds(2), 20);
  queue.Add(kStart + absl::Seconds(9), 90);

  EXPECT_THAT(queue.TakeExpired(kStart), IsEmpty());
  EXPECT_THAT(queue.TakeExpired(kStart + absl::Seconds(3)),
              ElementsAre(10, 20, 30));
  EXPECT_EQ(queue.next(), kStart + absl::Seconds(9));
  EXPECT_EQ(queue.size(), 1u);
}

TEST(DeadlineQueueTest, ARemovedKeyNeverExpires) {
  DeadlineQueue queue;
  queue.Add(kStart, 1);
  queue.Add(kStart, 2);

  queue.Remove(kStart, 1);
  queue.Remove(kStart, 7);

  EXPECT_THAT(queue.TakeExpired(kStart), ElementsAre(2));
  EXPECT_EQ(queue.next(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace farkv
