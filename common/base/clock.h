// The clock seam. Leases, deadlines and heartbeats ask a Clock, so tests can
// move time by hand. Thread-safe.
#ifndef FARKV_COMMON_BASE_CLOCK_H_
#define FARKV_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace farkv {

class Clock {
 public:
  virtual ~Clock() = default;
  // Time since an arbitrary origin that goes on while the machine sleeps
  // (CLOCK_BOOTTIME), so a lease cannot outlive a suspend unnoticed. Only
  // differences mean anything; never compare between processes.
  virtual absl::Time Now() const = 0;

  static const Clock& Boottime();
};

}  // namespace farkv

#endif  // FARKV_COMMON_BASE_CLOCK_H_
