#include "common/async/thread_executor.h"

#include <utility>

namespace farkv {

ThreadExecutor::ThreadExecutor(int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { ThreadMain(); });
  }
}

ThreadExecutor::~ThreadExecutor() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadExecutor::Execute(absl::AnyInvocable<void() &&> task) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(task));
}

void ThreadExecutor::ThreadMain() {
  for (;;) {
    absl::AnyInvocable<void() &&> task;
    {
      absl::MutexLock lock(&mutex_);
      auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&woken));
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    std::move(task)();
  }
}

}  // namespace farkv
