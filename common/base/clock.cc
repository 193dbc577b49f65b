#include "common/base/clock.h"

#include <time.h>

namespace farkv {
namespace {

class BoottimeClock final : public Clock {
 public:
  absl::Time Now() const override {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return absl::TimeFromTimespec(ts);
  }
};

}  // namespace

const Clock& Clock::Boottime() {
  static const BoottimeClock clock;
  return clock;
}

}  // namespace farkv
