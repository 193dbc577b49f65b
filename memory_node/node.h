// The parts of a memory-node process in construction order: each may use those
// above it, and they go away in reverse.
//
// Start opens every port and begins to prefault the pool; until that is done
// the node is alive but not ready: /readyz and health say so, no session is
// opened. BeginServing ends that.
//
// Shutdown: prefaulting ends -> servers refuse calls -> transport closes its
// peers -> what its executor still has to run is run -> members go.
#ifndef FARKV_MEMORY_NODE_NODE_H_
#define FARKV_MEMORY_NODE_NODE_H_

#include <atomic>
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
#include "memory_node/data/decide_handler.h"
#include "memory_node/data/eviction_log.h"
#include "memory_node/data/scrubber.h"
#include "memory_node/directory/directory.h"
#include "memory_node/directory/lease_sweeper.h"
#include "memory_node/fill_report.h"
#include "memory_node/node_gauges.h"
#include "memory_node/node_options.h"
#include "memory_node/pool/page_pool.h"
#include "memory_node/pool/pool_filler.h"
#include "memory_node/service/node_events.h"

namespace farkv {

class AdminService;
class MemoryService;

// Makes the data plane's transport; `directory` is for fault decorators.
using NodeTransportFactory =
    std::function<absl::StatusOr<std::unique_ptr<Transport>>(
        TransportOptions options, Directory& directory)>;

struct NodePorts {
  uint16_t listen = 0, admin = 0, metrics = 0, data = 0;
};

class Node {
 public:
  // `options` as Finish() left them. `on_prefaulted` is called, on another
  // thread, when BeginServing would not wait any more.
  static absl::StatusOr<std::unique_ptr<Node>> Start(
      const NodeOptions& options, const NodeTransportFactory& transport,
      std::function<void()> on_prefaulted = nullptr);
  // Waits until the pool is prefaulted; the node is ready then.
  // RESOURCE_EXHAUSTED naming the bytes wanted, done and available when the
  // machine refused some.
  absl::Status BeginServing();
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
  PagePool* t2_pool() { return t2_pool_.get(); }
  Directory& directory() { return directory_; }
  const Metrics& metrics() const { return metrics_; }

 private:
  explicit Node(const NodeOptions& options);
  absl::Status StartDataPlane(const NodeTransportFactory& factory);
  absl::Status StartMap();
  absl::Status StartServers();
  absl::StatusOr<PagePool::SharedSlab> Share(const std::string& tenant,
                                             uint32_t slab_id) const;
  void StartPrefault(std::function<void()> on_prefaulted);
  // Of both pools.
  absl::Status AwaitFilled() const;
  size_t SlabBytes() const;
  absl::Status CheckServing() const;
  // Metrics that are read from snapshots at each scrape.
  void RefreshGauges();
  DecideContext DecisionContext();
  absl::StatusOr<EvictionReply> Decide(EvictionCall call);
  absl::StatusOr<Replay> ReplayLogged(uint64_t decision_id);
  void Stop();

  const NodeOptions options_;
  NodePorts ports_;
  Metrics metrics_;
  NodeGauges gauges_;
  DataMetrics data_metrics_;
  FillReport fill_report_;
  PagePool pool_;
  std::unique_ptr<PagePool> t2_pool_;  // absent without --t2-bytes
  Directory directory_;
  NodeEvents events_;
  Scrubber scrubber_;
  ThreadPool attend_pool_;
  EvictionLog eviction_log_;
  DataPlane data_plane_;
  ThreadExecutor data_executor_;
  ThreadExecutor attend_executor_;  // one at a time, each on attend_pool_
  ThreadExecutor control_executor_;
  ThreadExecutor compress_executor_;
  ThreadExecutor decide_executor_;
  ThreadExecutor scrub_executor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<LeaseSweeper> sweeper_;
  std::unique_ptr<MapServer> map_server_;
  std::unique_ptr<MemoryService> memory_service_;
  std::unique_ptr<AdminService> admin_service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcServer> admin_server_;
  std::unique_ptr<HttpServer> http_;
  std::atomic<bool> serving_{false};
  std::atomic<int> pools_to_fill_{0};
  std::atomic<bool> fill_failed_{false};
  std::unique_ptr<PoolFiller> filler_;
  std::unique_ptr<PoolFiller> t2_filler_;  // absent without --t2-bytes
  uint64_t readiness_subscription_ = 0;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_NODE_H_
