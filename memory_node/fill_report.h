// What the log says while a node's pool is prefaulted: a beginning, at most one
// line in two seconds, an end with the rate. Thread-safe.
#ifndef FARKV_MEMORY_NODE_FILL_REPORT_H_
#define FARKV_MEMORY_NODE_FILL_REPORT_H_

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace farkv {

class FillReport {
 public:
  explicit FillReport(size_t total_bytes);

  void Begin(int threads, int metrics_port);
  void Progress(size_t done_bytes);
  void End(bool huge_pages);
  // Warns once, of the first slab without the huge pages that were wanted.
  void Slab(bool huge_pages_wanted, bool huge_pages);

 private:
  const size_t total_bytes_;
  std::atomic<bool> warned_{false};
  absl::Mutex mutex_;
  absl::Time begin_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_line_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_FILL_REPORT_H_
