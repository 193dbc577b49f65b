// absl::Status <-> grpc::Status. The reason, retry hint and message travel as
// an ErrorDetail in the status details. Pure.
#ifndef FARKV_COMMON_RPC_STATUS_CODEC_H_
#define FARKV_COMMON_RPC_STATUS_CODEC_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "farkv/types/v1/types.pb.h"

namespace farkv {

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// The same inside a batch: OK is a detail with code 0.
farkv::types::v1::ErrorDetail ToErrorDetail(const absl::Status& status);
absl::Status FromErrorDetail(const farkv::types::v1::ErrorDetail& detail);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_STATUS_CODEC_H_
