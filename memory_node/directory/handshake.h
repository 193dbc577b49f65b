// What a worker and this node must agree on before any row moves. Pure.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_HANDSHAKE_H_
#define FARKV_MEMORY_NODE_DIRECTORY_HANDSHAKE_H_

#include "absl/status/status.h"
#include "common/rpc/memory_types.h"

namespace farkv {

// FAILED_PRECONDITION naming the field and both values, with the reason
// kProtocolMismatch, or kKernelTargetMismatch when `bitwise` and the kernels
// differ (DESIGN P1, P2).
absl::Status CheckHandshake(const Handshake& node, const Handshake& worker,
                            bool bitwise);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_HANDSHAKE_H_
