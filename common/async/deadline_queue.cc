#include "common/async/deadline_queue.h"

namespace farkv {

std::vector<uint64_t> DeadlineQueue::TakeExpired(absl::Time now) {
  std::vector<uint64_t> expired;
  while (!queue_.empty() && queue_.begin()->first <= now) {
    expired.push_back(queue_.begin()->second);
    queue_.erase(queue_.begin());
  }
  return expired;
}

}  // namespace farkv
