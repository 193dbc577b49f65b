#include "memory_node/directory/handshake.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"

namespace farkv {
namespace {

template <typename T>
absl::Status Agree(const char* field, const T& node, const T& worker,
                   ErrorReason reason) {
  if (node == worker) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          field, " is ", node, " on the node and ", worker, " on the worker")),
      reason);
}

}  // namespace

absl::Status CheckHandshake(const Handshake& node, const Handshake& worker,
                            bool bitwise) {
  FARKV_RETURN_IF_ERROR(Agree("protocol version", node.protocol_version,
                              worker.protocol_version,
                              ErrorReason::kProtocolMismatch));
  FARKV_RETURN_IF_ERROR(Agree("page format version", node.page_format_version,
                              worker.page_format_version,
                              ErrorReason::kProtocolMismatch));
  if (!bitwise) return absl::OkStatus();
  return Agree("kernel target", node.kernel_target, worker.kernel_target,
               ErrorReason::kKernelTargetMismatch);
}

}  // namespace farkv
