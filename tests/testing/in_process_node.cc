#include "tests/testing/in_process_node.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/transport/ucx/ucx_transport.h"

namespace farkv {

NodeOptions InProcessNodeOptions(const std::string& node_id) {
  NodeOptions options;
  options.node_id = node_id;
  options.listen = "127.0.0.1:0";
  options.admin_listen = "127.0.0.1:0";
  options.metrics_listen = "127.0.0.1:0";
  options.data_listen = "127.0.0.1:0";
  options.pool.slab_bytes = size_t{8} << 20;  // quick to prefault
  options.pool.capacity_bytes = 2 * options.pool.slab_bytes;
  options.threads = 2;
  options.drain_grace = absl::ZeroDuration();
  return options;
}

absl::StatusOr<std::unique_ptr<Node>> StartInProcessNode(
    NodeOptions options, LoopbackNetwork* network) {
  FARKV_RETURN_IF_ERROR(options.Finish());
  const auto make =
      [network](TransportOptions transport,
                Directory&) -> absl::StatusOr<std::unique_ptr<Transport>> {
    if (network == nullptr) {
      return CreateUcxTransport(std::move(transport), {});
    }
    return network->CreateTransport(std::move(transport));
  };
  FARKV_ASSIGN_OR_RETURN(std::unique_ptr<Node> node,
                         Node::Start(options, make));
  FARKV_RETURN_IF_ERROR(node->BeginServing());
  return node;
}

}  // namespace farkv
