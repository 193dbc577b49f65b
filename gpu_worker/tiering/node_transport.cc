#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<Transport>> MakeNodeTransport(
    const TieringOptions& tiering, TransportOptions options) {
  if (!tiering.fault_spec.empty() || tiering.skip_row_checks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a fault spec, \"", tiering.fault_spec, "\", and skip_row_checks, ",
        tiering.skip_row_checks ? "true" : "false",
        ", are accepted by the -faults programs only"));
  }
  return CreateUcxTransport(std::move(options), NodeUcxOptions(tiering));
}

}  // namespace farkv
