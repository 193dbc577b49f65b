// For how long a node that failed is left alone: twice as long after each
// failure, from the start after a success. A plain value.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_PAUSE_H_
#define FARKV_GPU_WORKER_TIERING_NODE_PAUSE_H_

#include <algorithm>

#include "absl/time/time.h"

namespace farkv {

class NodePause {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(5);
  static constexpr absl::Duration kLongest = absl::Minutes(2);

  bool Over(absl::Time now) const { return now >= until_; }
  // Of several failures at once the first counts.
  void Failed(absl::Time now) {
    if (!Over(now)) return;
    until_ = now + next_;
    next_ = std::min(2 * next_, kLongest);
  }
  void Succeeded() { next_ = kFirst; }

 private:
  absl::Time until_ = absl::InfinitePast();
  absl::Duration next_ = kFirst;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_PAUSE_H_
