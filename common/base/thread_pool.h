// A fixed set of threads that run one parallel loop at a time, for kernels.
// The caller of ParallelFor works too, so a pool of 1 thread starts none.
// Thread-safe: while one loop runs, another one (from another thread, or from
// inside a body) runs on its caller alone. No queue: nothing outlives a call.
#ifndef FARKV_COMMON_BASE_THREAD_POOL_H_
#define FARKV_COMMON_BASE_THREAD_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace farkv {

class ThreadPool {
 public:
  // `num_threads` >= 1, the caller of ParallelFor included.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls body(i) once for each i in [0, count), in any order and on any
  // thread, and returns when all have returned.
  void ParallelFor(int64_t count, const std::function<void(int64_t)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_THREAD_POOL_H_
