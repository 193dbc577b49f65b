// The data plane of the -faults programs: UCX inside the fault decorator.
#include <utility>

#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "common/transport/faults/fault_transport.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<Transport>> MakeNodeTransport(
    const TieringOptions& tiering, TransportOptions options) {
  if (tiering.skip_row_checks) {
    spdlog::warn("cold rows are NOT checked: skip_row_checks is set");
  }
  const UcxOptions ucx = NodeUcxOptions(tiering);
  if (tiering.fault_spec.empty()) {
    return CreateUcxTransport(std::move(options), ucx);
  }
  FARKV_ASSIGN_OR_RETURN(const FaultSpec spec,
                         ParseFaultSpec(tiering.fault_spec));
  spdlog::warn("the data plane injects faults: {}", tiering.fault_spec);
  return CreateFaultTransport(
      spec, std::move(options), [ucx](TransportOptions inner) {
        return CreateUcxTransport(std::move(inner), ucx);
      });
}

}  // namespace farkv
