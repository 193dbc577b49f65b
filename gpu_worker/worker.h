// The parts of a worker process in construction order: each may use those
// above it, and they go away in reverse.
#ifndef FARKV_GPU_WORKER_WORKER_H_
#define FARKV_GPU_WORKER_WORKER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/server.h"
#include "common/telemetry/following_counter.h"
#include "common/telemetry/http_server.h"
#include "common/telemetry/metrics.h"
#include "common/transport/transport_metrics.h"
#include "gpu_worker/engine/engine.h"
#include "gpu_worker/worker_flags.h"

namespace farkv {

class GenerationServiceImpl;
class WorkerAdminService;

class Worker {
 public:
  // Ready to serve when it returns. `config` is shown by the admin service;
  // `before_nodes`: EngineOptions.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(
      WorkerFlags flags, std::map<std::string, std::string> config,
      std::function<void()> before_nodes);

  ~Worker();

  // Refuses new requests, lets running ones end within the grace, closes.
  void DrainAndStop();

  uint16_t port() const { return server_->port(); }
  uint16_t admin_port() const { return admin_server_->port(); }
  uint16_t metrics_port() const { return http_->port(); }
  const std::string& worker_id() const {
    return flags_.engine.tiering.worker_id;
  }

 private:
  explicit Worker(WorkerFlags flags);
  // Gauges that are read from snapshots at each scrape.
  void RefreshGauges();
  // Health and /readyz say whether new requests are taken.
  void ShowReadiness();
  void StopServing();

  struct Gauges {
    Gauge t0_capacity, t0_used, staging, running, waiting;
  };
  // Of one node, by its address.
  struct NodeMetrics {
    NodeMetrics(Metrics& metrics, const std::string& address);
    FollowingCounter sent, answered;
    FollowingCounter damaged_answers, repeated_fetches;
    FollowingCounter failed_fetches, failed_stores;
    TransportMetrics transport;
    Gauge link_rate, attend_rate;
    std::map<std::string, Gauge> info;   // by name of the transport
    std::map<std::string, Gauge> modes;  // by name of the cold mode
    void ShowTransport(Metrics& metrics, const PeerStats& peer);
    void ShowRates(Metrics& metrics, const PeerStats& peer);
  };

  WorkerFlags flags_;
  Metrics metrics_;
  Gauges gauges_;
  absl::Mutex nodes_mutex_;
  std::map<std::string, NodeMetrics> nodes_ ABSL_GUARDED_BY(nodes_mutex_);
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<GenerationServiceImpl> generation_;
  std::unique_ptr<WorkerAdminService> admin_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcServer> admin_server_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_WORKER_H_
