// An executor that runs tasks only when a test says so, on the test's thread.
// Execute() may be called from any thread.
#ifndef FARKV_TESTS_TESTING_STEPPING_EXECUTOR_H_
#define FARKV_TESTS_TESTING_STEPPING_EXECUTOR_H_

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/async/executor.h"

namespace farkv {

class SteppingExecutor final : public Executor {
 public:
  void Execute(absl::AnyInvocable<void() &&> task) override {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(task));
  }

  // Runs the oldest task; false when there is none.
  bool RunOne() {
    absl::AnyInvocable<void() &&> task;
    {
      absl::MutexLock lock(&mutex_);
      if (queue_.empty()) return false;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    std::move(task)();
    return true;
  }

  // Runs until nothing is queued; how many tasks that were.
  int RunAll() {
    int count = 0;
    while (RunOne()) ++count;
    return count;
  }

 private:
  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void() &&>> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_TESTS_TESTING_STEPPING_EXECUTOR_H_
