// Counts failures by their status code, as the label "reason" (OPS 2). Every
// reason is there from the start, at zero. Thread-safe.
#ifndef FARKV_COMMON_TELEMETRY_FAILURE_COUNTER_H_
#define FARKV_COMMON_TELEMETRY_FAILURE_COUNTER_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "common/telemetry/metrics.h"

namespace farkv {

class FailureCounter {
 public:
  // Counts go nowhere.
  FailureCounter() = default;
  FailureCounter(Metrics& metrics, const std::string& name,
                 const std::string& help) {
    for (size_t code = 1; code < kCodes; ++code) {
      counters_[code] = metrics.AddCounter(
          name, help,
          {{"reason",
            absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
  }

  // OK is no failure, and not counted.
  void Count(absl::StatusCode code) {
    const auto index = static_cast<size_t>(code);
    if (index < kCodes) counters_[index].Increment();
  }

 private:
  static constexpr size_t kCodes = 17;
  std::array<Counter, kCodes> counters_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TELEMETRY_FAILURE_COUNTER_H_
