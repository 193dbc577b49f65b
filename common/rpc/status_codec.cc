#include "common/rpc/status_codec.h"

#include "common/rpc/duration_codec.h"
#include "common/rpc/error_reason.h"

namespace farkv {

using types::v1::ErrorDetail;

ErrorDetail ToErrorDetail(const absl::Status& status) {
  ErrorDetail detail;
  detail.set_code(static_cast<int32_t>(status.code()));
  if (status.ok()) return detail;
  detail.set_reason(
      static_cast<types::v1::ErrorReason>(static_cast<int>(ReasonOf(status))));
  detail.set_message(std::string(status.message()));
  if (const auto after = RetryAfterOf(status)) {
    *detail.mutable_retry_after() = ToProto(*after);
  }
  return detail;
}

absl::Status FromErrorDetail(const ErrorDetail& detail) {
  if (detail.code() == 0) return absl::OkStatus();
  absl::Status status(static_cast<absl::StatusCode>(detail.code()),
                      detail.message());
  if (detail.reason() != types::v1::ERROR_REASON_UNSPECIFIED) {
    status = WithReason(std::move(status),
                        static_cast<ErrorReason>(detail.reason()));
  }
  if (detail.has_retry_after()) {
    status = WithRetryAfter(std::move(status), FromProto(detail.retry_after()));
  }
  return status;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()),
                      ToErrorDetail(status).SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  ErrorDetail detail;
  const bool ours = !status.error_details().empty() &&
                    detail.ParseFromString(status.error_details());
  if (!ours) detail.Clear();
  detail.set_code(static_cast<int32_t>(status.error_code()));
  detail.set_message(status.error_message());
  return FromErrorDetail(detail);
}

}  // namespace farkv
