#include "common/base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace farkv {
namespace {

// Waits a moment for what usually comes soon (the next loop of a decoder
// layer, the end of another thread's last piece), because waking a sleeper
// costs about as much. Yielding, so that it takes no core from anybody.
template <typename Predicate>
void YieldUntil(const Predicate& predicate) {
  constexpr std::chrono::microseconds kMoment{50};
  const auto end = std::chrono::steady_clock::now() + kMoment;
  while (!predicate() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

}  // namespace

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
  // Copies of `loop` and `running` that may be looked at without the lock.
  std::atomic<uint64_t> announced{0};
  std::atomic<int> busy{0};
  std::vector<std::thread> threads;

  // False when another loop has the threads.
  bool TryStart(const std::function<void(int64_t)>& run, int64_t end) {
    absl::MutexLock lock(&mutex);
    if (taken) return false;
    taken = true;
    next.store(0, std::memory_order_relaxed);
    body = &run;
    count = end;
    announced.store(++loop, std::memory_order_relaxed);
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
      YieldUntil(
          [&] { return announced.load(std::memory_order_relaxed) != seen; });
      const std::function<void(int64_t)>* run = nullptr;
      int64_t end = 0;
      {
        absl::MutexLock lock(&mutex);
        auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
          return stop || loop != seen;
        };
        mutex.Await(absl::Condition(&woken));
        if (stop) return;
        seen = loop;
        if (body == nullptr) continue;  // came too late for that loop
        run = body;
        end = count;
        busy.store(++running, std::memory_order_relaxed);
      }
      Work(*run, end);
      absl::MutexLock lock(&mutex);
      busy.store(--running, std::memory_order_relaxed);
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
  YieldUntil([&] { return state.busy.load(std::memory_order_relaxed) == 0; });
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
