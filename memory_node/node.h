// The parts of a memory-node process in construction order: each may use those
// above it, and they go away in reverse.
//
// Shutdown: servers refuse calls -> transport closes its peers -> what its
// executor still has to run is run -> members go.
#ifndef FARKV_MEMORY_NODE_NODE_H_
#define FARKV_MEMORY_NODE_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/async/thread_executor.h"
#include "common/base/thread_pool.h"
#include "common/mapping/map_socket.h"
#include "common/rpc/server.h"
#include "common/telemetry/http_server.h"
#include "common/telemetry/metrics.h"
#include "common/transport/transport.h"
#include "memory_node/data/data_plane.h"
#include "memory_node/data/scrubber.h"
#include "memory_node/directory/directory.h"
#include "memory_node/directory/lease_sweeper.h"
#include "memory_node/node_gauges.h"
#include "memory_node/node_options.h"
#include "memory_node/pool/page_pool.h"
#include "memory_node/service/admin_service.h"
#include "memory_node/service/memory_service.h"
#include "memory_node/service/node_events.h"

namespace farkv {

// Makes the data plane's transport; `directory` is for fault decorators.
using NodeTransportFactory =
    std::function<absl::StatusOr<std::unique_ptr<Transport>>(
        TransportOptions options, Directory& directory)>;

struct NodePorts {
  uint16_t listen = 0, admin = 0, metrics = 0, data = 0;
};

class Node {
 public:
  // Ready to serve when it returns. `options` as Finish() left them.
  static absl::StatusOr<std::unique_ptr<Node>> Start(
      const NodeOptions& options, const NodeTransportFactory& transport);
  // Stops, without waiting for sessions.
  ~Node();

  // Takes no new session and waits for the open ones, up to the grace. Returns
  // how many are left.
  size_t Drain();

  const std::string& node_id() const { return options_.node_id; }
  Epoch epoch() const { return directory_.epoch(); }
  const NodePorts& ports() const { return ports_; }
  // For tests: accounting of the pool and the sessions.
  PagePool& pool() { return pool_; }
  Directory& directory() { return directory_; }
  const Metrics& metrics() const { return metrics_; }

 private:
  explicit Node(const NodeOptions& options);
  absl::Status StartDataPlane(const NodeTransportFactory& factory);
  absl::Status StartMap();
  absl::Status StartServers();
  void Stop();

  const NodeOptions options_;
  NodePorts ports_;
  Metrics metrics_;
  NodeGauges gauges_;
  DataMetrics data_metrics_;
  PagePool pool_;
  Directory directory_;
  NodeEvents events_;
  Scrubber scrubber_;
  ThreadPool attend_pool_;
  DataPlane data_plane_;
  ThreadExecutor data_executor_;
  ThreadExecutor control_executor_;
  ThreadExecutor scrub_executor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<LeaseSweeper> sweeper_;
  std::unique_ptr<MapServer> map_server_;
  std::unique_ptr<MemoryService> memory_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcServer> admin_server_;
  std::unique_ptr<HttpServer> http_;
  uint64_t readiness_subscription_ = 0;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_NODE_H_
