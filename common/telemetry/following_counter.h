// A counter metric that follows a total which is kept elsewhere and read from
// snapshots. Thread-compatible.
#ifndef FARKV_COMMON_TELEMETRY_FOLLOWING_COUNTER_H_
#define FARKV_COMMON_TELEMETRY_FOLLOWING_COUNTER_H_

#include <cstdint>

#include "common/telemetry/metrics.h"

namespace farkv {

class FollowingCounter {
 public:
  FollowingCounter() = default;
  explicit FollowingCounter(Counter counter) : counter_(counter) {}

  // Shows `total`; one below what is shown changes nothing.
  void Follow(uint64_t total) {
    if (total <= shown_) return;
    counter_.Increment(static_cast<double>(total - shown_));
    shown_ = total;
  }

 private:
  Counter counter_;
  uint64_t shown_ = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TELEMETRY_FOLLOWING_COUNTER_H_
