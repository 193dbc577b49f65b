// An executor of a fixed number of threads over one queue, first in first out.
// With one thread tasks run in the order given. The queue is as long as the
// operations admitted by whoever calls Execute (executor.h); it has no bound
// of its own. Thread-safe.
#ifndef FARKV_COMMON_ASYNC_THREAD_EXECUTOR_H_
#define FARKV_COMMON_ASYNC_THREAD_EXECUTOR_H_

#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/async/executor.h"

namespace farkv {

class ThreadExecutor final : public Executor {
 public:
  // `num_threads` >= 1.
  explicit ThreadExecutor(int num_threads);
  // Runs what is queued, and what those tasks queue, then joins. Must not run
  // on one of its own threads.
  ~ThreadExecutor() override;
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  void Execute(absl::AnyInvocable<void() &&> task) override;

 private:
  void ThreadMain();

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void() &&>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ASYNC_THREAD_EXECUTOR_H_
