// Logging of state changes (never of single operations) through spdlog, to
// stderr, as text or as one JSON object per line. Set up once in main.
#ifndef FARKV_COMMON_TELEMETRY_LOG_H_
#define FARKV_COMMON_TELEMETRY_LOG_H_

#include <spdlog/spdlog.h>

#include <string>

#include "absl/status/status.h"

namespace farkv {

struct LogOptions {
  std::string level = "info";   // debug, info, warn, error
  std::string format = "text";  // text, json
};

// INVALID_ARGUMENT naming the value. `process` is shown in every line.
absl::Status SetUpLogging(const LogOptions& options,
                          const std::string& process);

}  // namespace farkv

#endif  // FARKV_COMMON_TELEMETRY_LOG_H_
