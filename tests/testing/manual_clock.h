// A clock that moves only when a test moves it. Thread-safe.
#ifndef FARKV_TESTS_TESTING_MANUAL_CLOCK_H_
#define FARKV_TESTS_TESTING_MANUAL_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace farkv {

class ManualClock final : public Clock {
 public:
  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

}  // namespace farkv

#endif  // FARKV_TESTS_TESTING_MANUAL_CLOCK_H_
