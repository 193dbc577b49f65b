#include "common/rpc/error_reason.h"

#include <array>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

constexpr char kReasonUrl[] = "farkv/reason";
constexpr char kRetryUrl[] = "farkv/retry-after-ms";

constexpr std::array<const char*, 17> kNames = {"UNSPECIFIED",
                                                "POOL_FULL",
                                                "QUEUE_FULL",
                                                "QUOTA_EXCEEDED",
                                                "STALE_EPOCH",
                                                "STALE_GENERATION",
                                                "LEASE_EXPIRED",
                                                "STALE_SEQUENCE_NUMBER",
                                                "PROTOCOL_MISMATCH",
                                                "GEOMETRY_MISMATCH",
                                                "KERNEL_TARGET_MISMATCH",
                                                "DRAINING",
                                                "INVALID_FIELD",
                                                "NOT_FOUND",
                                                "CHECKSUM",
                                                "PROMPT_TOO_LONG",
                                                "DUPLICATE"};

std::optional<int64_t> PayloadNumber(const absl::Status& status,
                                     const char* url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  int64_t number = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &number)) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

const char* ErrorReasonName(ErrorReason reason) {
  const auto index = static_cast<size_t>(reason);
  return index < kNames.size() ? kNames[index] : kNames[0];
}

absl::Status WithReason(absl::Status status, ErrorReason reason) {
  status.SetPayload(kReasonUrl,
                    absl::Cord(absl::StrCat(static_cast<int32_t>(reason))));
  return status;
}

ErrorReason ReasonOf(const absl::Status& status) {
  const auto number = PayloadNumber(status, kReasonUrl).value_or(0);
  const bool known = number >= 0 && number < int64_t{kNames.size()};
  return known ? static_cast<ErrorReason>(number) : ErrorReason::kUnspecified;
}

absl::Status WithRetryAfter(absl::Status status, absl::Duration after) {
  status.SetPayload(kRetryUrl,
                    absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(after))));
  return status;
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const auto number = PayloadNumber(status, kRetryUrl);
  if (!number.has_value()) return std::nullopt;
  return absl::Milliseconds(*number);
}

}  // namespace farkv
