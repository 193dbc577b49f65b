// The one table from UCX's status codes to ours. Pure.
#ifndef FARKV_COMMON_TRANSPORT_UCX_UCX_STATUS_H_
#define FARKV_COMMON_TRANSPORT_UCX_UCX_STATUS_H_

#include <ucs/type/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace farkv {

// OK for UCS_OK; otherwise `what` was tried and UCX's own text.
absl::Status FromUcx(ucs_status_t status, absl::string_view what);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_UCX_STATUS_H_
