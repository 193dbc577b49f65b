#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<Transport>> MakeNodeTransport(
    const std::string& fault_spec, TransportOptions options) {
  if (!fault_spec.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a fault spec, \"", fault_spec,
                     "\", is accepted by the -faults programs only"));
  }
  return CreateUcxTransport(std::move(options), UcxOptions());
}

}  // namespace farkv
