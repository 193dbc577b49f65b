// Makes a pool's slabs ahead of need: the whole pool at the start, on several
// threads, and later what the pool wants, on one that sleeps meanwhile. So no
// request waits for the first touch of memory, and a machine without enough of
// it is found out before the node serves. DESIGN 6 "prefaulted with progress".
//
// Thread-safe.
#ifndef FARKV_MEMORY_NODE_POOL_POOL_FILLER_H_
#define FARKV_MEMORY_NODE_POOL_POOL_FILLER_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

struct PoolFillerOptions {
  int threads = 1;  // of the first filling
  // Called on the filler's threads, at any time, several at once; may be
  // empty. After each slab of the first filling: bytes of the pool that are
  // there. Once, after the first filling: OK, the first error, or CANCELLED.
  // When a later slab could not be made.
  std::function<void(size_t done_bytes)> on_progress;
  std::function<void(const absl::Status&)> on_filled;
  std::function<void(const absl::Status&)> on_refill_error;
};

class PoolFiller {
 public:
  // Starts at once. `pool` outlives the filler.
  PoolFiller(PagePool& pool, PoolFillerOptions options);
  // Returns after the slabs under way.
  ~PoolFiller();
  PoolFiller(const PoolFiller&) = delete;
  PoolFiller& operator=(const PoolFiller&) = delete;

  // Waits for the end of the first filling; what on_filled was told.
  absl::Status AwaitFilled() const;

 private:
  void FillMain(int index);
  // True for the last of the threads.
  bool Fill();
  void Refill();

  PagePool& pool_;
  const PoolFillerOptions options_;
  mutable absl::Mutex mutex_;
  int filling_ ABSL_GUARDED_BY(mutex_);  // threads
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_POOL_FILLER_H_
