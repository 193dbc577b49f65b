#include "common/transport/ucx/ucx_status.h"

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

absl::StatusCode CodeOf(ucs_status_t status) {
  switch (status) {
    case UCS_OK:
      return absl::StatusCode::kOk;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_CANCELED:  // the endpoint was closed under the operation
      return absl::StatusCode::kUnavailable;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_EXCEEDS_LIMIT:
      return absl::StatusCode::kResourceExhausted;
    case UCS_ERR_BUSY:
    case UCS_ERR_ALREADY_EXISTS:
      return absl::StatusCode::kAlreadyExists;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
    case UCS_ERR_NO_DEVICE:
      return absl::StatusCode::kInvalidArgument;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NOT_IMPLEMENTED:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

// UCX calls every end of a connection that it notices a timeout, at once though
// it may be.
const char* TextOf(ucs_status_t status) {
  return status == UCS_ERR_ENDPOINT_TIMEOUT ? "the peer has gone"
                                            : ucs_status_string(status);
}

}  // namespace

absl::Status FromUcx(ucs_status_t status, absl::string_view what) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::Status(CodeOf(status), absl::StrCat(what, ": ", TextOf(status)));
}

}  // namespace farkv
