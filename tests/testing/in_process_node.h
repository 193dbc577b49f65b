// A whole memory node inside the test's process: real services on free ports
// of 127.0.0.1, a real pool, and a data plane over the loopback network or
// over UCX.
#ifndef FARKV_TESTS_TESTING_IN_PROCESS_NODE_H_
#define FARKV_TESTS_TESTING_IN_PROCESS_NODE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/transport/loopback_transport.h"
#include "memory_node/node.h"
#include "memory_node/node_options.h"

namespace farkv {

// Options with every port free, two slabs and no wait for sessions at the end.
NodeOptions InProcessNodeOptions(const std::string& node_id);

// `network` outlives the node; nullptr: UCX over TCP.
absl::StatusOr<std::unique_ptr<Node>> StartInProcessNode(
    NodeOptions options, LoopbackNetwork* network);

}  // namespace farkv

#endif  // FARKV_TESTS_TESTING_IN_PROCESS_NODE_H_
