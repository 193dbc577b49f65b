#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "common/async/thread_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/stepping_executor.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;

TEST(ThreadExecutorTest, OneThreadKeepsTheOrder) {
  std::vector<int> seen;
  {
    ThreadExecutor executor(1);
    for (int i = 0; i < 3; ++i) {
      executor.Execute([&seen, i] { seen.push_back(i); });
    }
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TEST(ThreadExecutorTest, TheDestructorRunsWhatIsQueued) {
  absl::Mutex mutex;
  int ran = 0;
  {
    ThreadExecutor executor(3);
    for (int i = 0; i < 100; ++i) {
      executor.Execute([&] {
        absl::MutexLock lock(&mutex);
        ++ran;
      });
    }
  }
  EXPECT_EQ(ran, 100);
}

TEST(ThreadExecutorTest, ThreadsRunSideBySide) {
  ThreadExecutor executor(2);
  absl::BlockingCounter both(2);

  // Each task ends only once the other has begun.
  for (int i = 0; i < 2; ++i) {
    executor.Execute([&both] { both.DecrementCount(); });
  }

  both.Wait();
}

TEST(SteppingExecutorTest, RunsOnlyWhenAsked) {
  SteppingExecutor executor;
  std::vector<int> seen;
  executor.Execute([&seen] { seen.push_back(1); });
  executor.Execute([&seen] { seen.push_back(2); });
  EXPECT_TRUE(seen.empty());

  EXPECT_TRUE(executor.RunOne());
  EXPECT_THAT(seen, ElementsAre(1));
  EXPECT_EQ(executor.RunAll(), 1);
  EXPECT_FALSE(executor.RunOne());
}

}  // namespace
}  // namespace farkv
