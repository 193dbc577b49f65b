// Which of many waiting things runs out of time next. Keys are chosen by the
// owner (a slot number, an operation id) and held at most once.
// Thread-compatible. Add and Remove cost O(log n).
#ifndef FARKV_COMMON_ASYNC_DEADLINE_QUEUE_H_
#define FARKV_COMMON_ASYNC_DEADLINE_QUEUE_H_

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace farkv {

class DeadlineQueue {
 public:
  void Add(absl::Time deadline, uint64_t key) {
    queue_.insert({deadline, key});
  }
  // Both values as they were added; without effect when they are not held.
  void Remove(absl::Time deadline, uint64_t key) {
    queue_.erase({deadline, key});
  }
  // The next deadline, or the infinite future.
  absl::Time next() const {
    return queue_.empty() ? absl::InfiniteFuture() : queue_.begin()->first;
  }
  // Removes and returns every key whose deadline is at or before `now`,
  // earliest first.
  std::vector<uint64_t> TakeExpired(absl::Time now);

  size_t size() const { return queue_.size(); }

 private:
  std::set<std::pair<absl::Time, uint64_t>> queue_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ASYNC_DEADLINE_QUEUE_H_
