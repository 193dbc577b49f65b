// The machine-readable reason inside an absl::Status (a payload), and its form
// on the wire (an ErrorDetail in the gRPC status details). Pure.
#ifndef FARKV_COMMON_RPC_ERROR_REASON_H_
#define FARKV_COMMON_RPC_ERROR_REASON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace farkv {

// Numbers equal farkv.types.v1.ErrorReason (a test compares them).
enum class ErrorReason : int32_t {
  kUnspecified = 0,
  kPoolFull = 1,
  kQueueFull = 2,
  kQuotaExceeded = 3,
  kStaleEpoch = 4,
  kStaleGeneration = 5,
  kLeaseExpired = 6,
  kStaleSequenceNumber = 7,
  kProtocolMismatch = 8,
  kGeometryMismatch = 9,
  kKernelTargetMismatch = 10,
  kDraining = 11,
  kInvalidField = 12,
  kNotFound = 13,
  kChecksum = 14,
  kPromptTooLong = 15,
  kDuplicate = 16,
};

const char* ErrorReasonName(ErrorReason reason);

absl::Status WithReason(absl::Status status, ErrorReason reason);
ErrorReason ReasonOf(const absl::Status& status);

absl::Status WithRetryAfter(absl::Status status, absl::Duration after);
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_ERROR_REASON_H_
