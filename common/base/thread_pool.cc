#include "common/base/thread_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace farkv {

struct ThreadPool::State {
  absl::Mutex mutex;
  // Whether a ParallelFor has the threads.
  bool taken ABSL_GUARDED_BY(mutex) = false;
  // One loop; `loop` counts them so that a thread joins each at most once.
  uint64_t loop ABSL_GUARDED_BY(mutex) = 0;
  int running ABSL_GUARDED_BY(mutex) = 0;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  const std::function<void(int64_t)>* body ABSL_GUARDED_BY(mutex) = nullptr;
  int64_t count ABSL_GUARDED_BY(mutex) = 0;
  std::atomic<int64_t> next{0};
  std::vector<std::thread> threads;

  // False when another loop has the threads.
  bool TryStart(const std::function<void(int64_t)>& run, int64_t end) {
    absl::MutexLock lock(&mutex);
    if (taken) return false;
    taken = true;
    next.store(0, std::memory_order_relaxed);
    body = &run;
    count = end;
    ++loop;
    return true;
  }

  void Work(const std::function<void(int64_t)>& run, int64_t end) {
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= end) return;
      run(i);
    }
  }

  void ThreadMain() {
    uint64_t seen = 0;
    for (;;) {
      const std::function<void(int64_t)>* run = nullptr;
      int64_t end = 0;
      {
        absl::MutexLock lock(&mutex);
        auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
          return stop || (loop != seen && body != nullptr);
        };
        mutex.Await(absl::Condition(&woken));
        if (stop) return;
        seen = loop;
        run = body;
        end = count;
        ++running;
      }
      Work(*run, end);
      absl::MutexLock lock(&mutex);
      --running;
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  for (int i = 1; i < num_threads; ++i) {
    state_->threads.emplace_back(
        [state = state_.get()] { state->ThreadMain(); });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stop = true;
  }
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::num_threads() const {
  return static_cast<int>(state_->threads.size()) + 1;
}

void ThreadPool::ParallelFor(int64_t count,
                             const std::function<void(int64_t)>& body) {
  State& state = *state_;
  if (state.threads.empty() || count <= 1 || !state.TryStart(body, count)) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  state.Work(body, count);
  absl::MutexLock lock(&state.mutex);
  // Clearing `body` first keeps a late waker out of a finished loop.
  state.body = nullptr;
  auto idle = [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    return state.running == 0;
  };
  state.mutex.Await(absl::Condition(&idle));
  state.taken = false;
}

}  // namespace farkv
