#include "gpu_worker/worker.h"

#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "gpu_worker/service/generation_service.h"
#include "gpu_worker/service/worker_admin_service.h"

namespace farkv {

Worker::NodeMetrics::NodeMetrics(Metrics& metrics, const std::string& address)
    : sent(metrics.AddCounter("farkv_worker_node_requests_total",
                              "Requests sent to a memory node",
                              {{"node", address}})),
      answered(metrics.AddCounter(
          "farkv_worker_node_answers_total",
          "Requests whose callback has run, whatever the result",
          {{"node", address}})),
      damaged_answers(
          metrics.AddCounter("farkv_worker_node_damaged_answers_total",
                             "Answers that failed a check and were not used",
                             {{"node", address}})),
      repeated_fetches(metrics.AddCounter(
          "farkv_worker_node_repeated_fetches_total",
          "Fetches that were sent a second time", {{"node", address}})),
      failed_fetches(metrics.AddCounter(
          "farkv_worker_node_failed_fetches_total",
          "Fetches that failed for good", {{"node", address}})),
      failed_stores(metrics.AddCounter(
          "farkv_worker_node_failed_stores_total",
          "Pages whose store failed and is tried again", {{"node", address}})),
      transport(metrics, "farkv_worker_", {{"node", address}}),
      link_rate(metrics.AddGauge("farkv_worker_node_link_bytes_per_second",
                                 "Of rows fetched from a memory node, measured",
                                 {{"node", address}})),
      attend_rate(metrics.AddGauge("farkv_worker_node_attend_rows_per_second",
                                   "That a memory node attends to, measured",
                                   {{"node", address}})) {}

// How it is reached may change when it is connected again.
void Worker::NodeMetrics::ShowTransport(Metrics& metrics,
                                        const PeerStats& peer) {
  if (!info.contains(peer.transport)) {
    info.emplace(peer.transport,
                 metrics.AddGauge(
                     "farkv_worker_node_info",
                     "1 for how cold rows come from a memory node at present",
                     {{"node", peer.address}, {"transport", peer.transport}}));
  }
  for (auto& [name, shown] : info) {
    shown.Set(name == peer.transport ? 1 : 0);
  }
}

void Worker::NodeMetrics::ShowRates(Metrics& metrics, const PeerStats& peer) {
  link_rate.Set(peer.link_bytes_per_second);
  attend_rate.Set(peer.attend_rows_per_second);
  if (!modes.contains(peer.cold_mode)) {
    modes.emplace(
        peer.cold_mode,
        metrics.AddGauge("farkv_worker_node_cold_mode",
                         "1 for how a node's cold rows are read at present",
                         {{"node", peer.address}, {"mode", peer.cold_mode}}));
  }
  for (auto& [name, shown] : modes) {
    shown.Set(name == peer.cold_mode ? 1 : 0);
  }
}

Worker::Worker(WorkerFlags flags) : flags_(std::move(flags)) {}

Worker::~Worker() { StopServing(); }

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(
    WorkerFlags flags, std::map<std::string, std::string> config,
    std::function<void()> before_nodes) {
  std::unique_ptr<Worker> worker(new Worker(std::move(flags)));
  Worker& w = *worker;
  const std::string prefix = "farkv_worker_";
  w.gauges_ = {
      w.metrics_.AddGauge(prefix + "t0_capacity_bytes", "Size of T0"),
      w.metrics_.AddGauge(prefix + "t0_used_bytes", "T0 lines in use"),
      w.metrics_.AddGauge(prefix + "staging_bytes", "Fetched rows in staging"),
      w.metrics_.AddGauge(prefix + "running_sequences", "Running sequences"),
      w.metrics_.AddGauge(prefix + "waiting_requests", "Waiting requests")};
  EngineOptions options = w.flags_.engine;
  options.metrics = &w.metrics_;
  options.before_nodes = std::move(before_nodes);
  FARKV_ASSIGN_OR_RETURN(w.engine_, Engine::Create(std::move(options)));
  w.generation_ = std::make_unique<GenerationServiceImpl>(*w.engine_);
  w.admin_ = std::make_unique<WorkerAdminService>(
      *w.engine_,
      WorkerAdminService::Identity{w.worker_id(), std::move(config), [&w] {
                                     w.RefreshGauges();
                                     return w.metrics_.Sums();
                                   }});
  FARKV_ASSIGN_OR_RETURN(
      w.server_,
      RpcServer::Start(w.flags_.listen, w.flags_.tls, {w.generation_.get()}));
  FARKV_ASSIGN_OR_RETURN(
      w.admin_server_,
      RpcServer::Start(w.flags_.admin_listen, w.flags_.tls, {w.admin_.get()}));
  FARKV_ASSIGN_OR_RETURN(w.http_,
                         HttpServer::Start(w.flags_.metrics_listen, w.metrics_,
                                           [&w] { w.RefreshGauges(); }));
  w.admin_server_->SetServing(true);
  // Whoever drains it, by signal or by the admin service.
  FARKV_RETURN_IF_ERROR(
      w.engine_->WatchLeft([&w](RequestQueue::Left) { w.ShowReadiness(); })
          .status());
  return worker;
}

// Several threads may call it at once; whoever writes last looks again.
void Worker::ShowReadiness() {
  bool draining = false;
  do {
    draining = engine_->Load().draining;
    server_->SetServing(!draining);
    http_->SetReady(!draining);
  } while (engine_->Load().draining != draining);
}

void Worker::RefreshGauges() {
  const EngineLoad load = engine_->Load();
  gauges_.t0_capacity.Set(static_cast<double>(load.t0.capacity_bytes));
  gauges_.t0_used.Set(static_cast<double>(load.t0.used_bytes));
  gauges_.staging.Set(static_cast<double>(load.t0.staging_bytes));
  gauges_.running.Set(load.running);
  gauges_.waiting.Set(load.waiting);
  const std::vector<PeerStats> peers = engine_->Peers();
  absl::MutexLock lock(&nodes_mutex_);
  for (const PeerStats& peer : peers) {
    NodeMetrics& node =
        nodes_.try_emplace(peer.address, metrics_, peer.address).first->second;
    node.sent.Follow(peer.requests_sent);
    node.answered.Follow(peer.requests_answered);
    node.damaged_answers.Follow(peer.damaged_answers);
    node.repeated_fetches.Follow(peer.repeated_fetches);
    node.failed_fetches.Follow(peer.failed_fetches);
    node.failed_stores.Follow(peer.failed_stores);
    node.transport.Set(peer.transfers);
    node.ShowTransport(metrics_, peer);
    node.ShowRates(metrics_, peer);
  }
}

void Worker::DrainAndStop() {
  // Refuses before anybody is told so.
  engine_->SetDraining(true);
  if (!engine_->WaitIdle(flags_.drain_grace)) {
    spdlog::warn("drain: requests still run after {}; cancelling them",
                 absl::FormatDuration(flags_.drain_grace));
  }
  StopServing();
}

// Ends all threads that may show readiness; the services ask the engine until
// their servers are down.
void Worker::StopServing() {
  if (engine_ != nullptr) engine_->Stop();
  if (server_ != nullptr) server_->Shutdown(absl::Seconds(1));
  if (admin_server_ != nullptr) admin_server_->Shutdown(absl::Seconds(1));
}

}  // namespace farkv
