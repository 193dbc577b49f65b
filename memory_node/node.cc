#include "memory_node/node.h"

#include <barrier>
#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/parse.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/process/address.h"
#include "common/process/version.h"
#include "kernels/stream.h"
#include "memory_node/compress/compressor.h"
#include "memory_node/pool/host_memory.h"
#include "memory_node/pool/memfd_source.h"
#include "memory_node/service/admin_service.h"
#include "memory_node/service/memory_service.h"

namespace farkv {
namespace {

constexpr int kControlThreads = 2;
// Streams of events do not end by themselves.
constexpr absl::Duration kCallGrace = absl::Milliseconds(200);
constexpr absl::Duration kTransportGrace = absl::Seconds(1);

Handshake OwnHandshake() {
  Handshake handshake;
  handshake.page_format_version = kPageFormatVersion;
  handshake.kernel_target = KernelTarget();
  handshake.software_version = SoftwareVersion();
  return handshake;
}

DirectoryOptions MakeDirectoryOptions(const NodeOptions& options) {
  DirectoryOptions made;
  // Rises with every start as long as the clock does.
  made.epoch = Epoch{static_cast<uint64_t>(absl::ToUnixMicros(absl::Now()))};
  made.handshake = OwnHandshake();
  made.max_lease = options.max_lease;
  return made;
}

DataPlaneOptions MakeDataPlaneOptions(const NodeOptions& options,
                                      std::function<void()> on_new_peer) {
  DataPlaneOptions made;
  made.peers.silence = 3 * options.max_lease;
  made.on_new_peer = std::move(on_new_peer);
  made.max_leaf_bytes = options.max_attend_leaf_bytes;
  return made;
}

SlabSource MakeSource(const NodeOptions& options, FillReport& report) {
  MemfdSourceOptions source;
  source.huge_pages = options.huge_pages;
  source.numa_node = static_cast<int>(options.numa_node);
  source.on_slab = [&report, wanted = options.huge_pages](size_t, bool huge) {
    report.Slab(wanted, huge);
  };
  return MakeMemfdSource(source);
}

// Of both pools.
size_t PoolBytes(const NodeOptions& options) {
  const size_t slab = options.pool.slab_bytes;
  return (options.pool.capacity_bytes / slab + options.t2_bytes / slab) * slab;
}

absl::Status CheckMachine(const NodeOptions& options) {
  const size_t bytes = options.pool.capacity_bytes + options.t2_bytes;
  FARKV_RETURN_IF_ERROR(
      CheckPoolFits(bytes, AvailableMemoryBytes(options.huge_pages)));
  return CheckDescriptorsSuffice(bytes, options.pool.slab_bytes,
                                 RaiseDescriptorLimit());
}

// The flags that an error about the pools' memory is about.
const char* PoolFlags(const NodeOptions& options) {
  return options.t2_bytes == 0 ? "--t1-bytes" : "--t1-bytes and --t2-bytes";
}

std::unique_ptr<PagePool> MakeT2Pool(const NodeOptions& options,
                                     FillReport& report, PagePool& t1) {
  if (options.t2_bytes == 0) return nullptr;
  return std::make_unique<PagePool>(
      options.T2Pool(), MakeSource(options, report), Clock::Boottime(), &t1);
}

// Returns when every task queued before has ended.
void WaitForTasks(ThreadExecutor& executor, int64_t num_threads) {
  const auto meeting =
      std::make_shared<std::barrier<>>(static_cast<ptrdiff_t>(num_threads + 1));
  for (int64_t i = 0; i < num_threads; ++i) {
    executor.Execute([meeting] { meeting->arrive_and_wait(); });
  }
  meeting->arrive_and_wait();
}

}  // namespace

Node::Node(const NodeOptions& options)
    : options_(options),
      gauges_(metrics_),
      data_metrics_(metrics_),
      fill_report_(PoolBytes(options)),
      pool_(options.pool, MakeSource(options, fill_report_), Clock::Boottime()),
      t2_pool_(MakeT2Pool(options, fill_report_, pool_)),
      directory_(MakeDirectoryOptions(options), pool_, Clock::Boottime(),
                 {t2_pool_.get(), CompressPage}),
      events_(directory_, pool_),
      scrubber_(directory_, data_metrics_.checksum_failures,
                options.scrub_rate),
      attend_pool_(static_cast<int>(options.threads)),
      data_plane_(MakeDataPlaneOptions(options, [this] { sweeper_->Poke(); }),
                  directory_, attend_pool_, data_metrics_, Clock::Boottime()),
      data_executor_(static_cast<int>(options.threads)),
      attend_executor_(1),
      control_executor_(kControlThreads),
      compress_executor_(1),
      decide_executor_(1),
      scrub_executor_(1),
      sweeper_(std::make_unique<LeaseSweeper>(
          directory_, Clock::Boottime(),
          [this](const std::vector<RevokedSession>& revoked) {
            for (const RevokedSession& session : revoked) {
              spdlog::warn("lease of session {} ran out",
                           SessionHandle(session.id));
            }
            events_.Refresh(revoked);
            data_plane_.ForgetClosedSessions();
            return data_plane_.CloseSilentPeers();
          })) {}

absl::StatusOr<std::unique_ptr<Node>> Node::Start(
    const NodeOptions& options, const NodeTransportFactory& transport,
    std::function<void()> on_prefaulted) {
  if (absl::Status status = CheckMachine(options); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(PoolFlags(options), ": ",
                                                    status.message()));
  }
  auto node = std::unique_ptr<Node>(new Node(options));
  FARKV_RETURN_IF_ERROR(node->StartDataPlane(transport));
  FARKV_RETURN_IF_ERROR(node->StartMap());
  FARKV_RETURN_IF_ERROR(node->StartServers());
  node->StartPrefault(std::move(on_prefaulted));
  return node;
}

absl::Status Node::StartDataPlane(const NodeTransportFactory& factory) {
  FARKV_ASSIGN_OR_RETURN(const Address listen,
                         ParseAddress(options_.data_listen));
  TransportOptions options;
  data_plane_.AttendOn(&attend_executor_);
  DataPlane::BoundReplies(options);
  options.executor = &data_executor_;
  options.on_request = [this](Incoming incoming) {
    data_plane_.Handle(std::move(incoming));
  };
  options.on_peer_connected = [this](PeerId peer) {
    data_plane_.PeerConnected(peer);
  };
  options.on_peer_lost = [this](PeerId peer, const absl::Status& why) {
    spdlog::info("connection {} ended: {}", peer.value, why.ToString());
    data_plane_.PeerLost(peer);
  };
  FARKV_ASSIGN_OR_RETURN(transport_, factory(std::move(options), directory_));
  data_plane_.Attach(transport_.get());
  absl::StatusOr<uint16_t> port = transport_->Listen(listen.host, listen.port);
  if (!port.ok()) {
    return absl::Status(port.status().code(),
                        absl::StrCat("--data-listen ", options_.data_listen,
                                     ": ", port.status().message()));
  }
  ports_.data = *port;
  return absl::OkStatus();
}

absl::Status Node::StartMap() {
  if (options_.map_dir.empty()) return absl::OkStatus();
  MapServerOptions options;
  options.map_dir = options_.map_dir;
  options.node_id = options_.node_id;
  const auto grant = [this](
                         const MapRequest& request,
                         const PeerCredentials&) -> absl::StatusOr<MapGrant> {
    FARKV_ASSIGN_OR_RETURN(
        const TokenOwner owner,
        directory_.CheckToken(request.session, request.token));
    FARKV_ASSIGN_OR_RETURN(PagePool::SharedSlab slab,
                           Share(owner.tenant, request.slab_id));
    data_plane_.NoteMapped(owner);
    return MapGrant{std::move(slab.descriptor), slab.bytes};
  };
  FARKV_ASSIGN_OR_RETURN(map_server_, MapServer::Start(options, grant));
  spdlog::info("map socket {}", map_server_->path());
  return absl::OkStatus();
}

absl::StatusOr<PagePool::SharedSlab> Node::Share(const std::string& tenant,
                                                 uint32_t slab_id) const {
  absl::StatusOr<PagePool::SharedSlab> slab = pool_.Share(tenant, slab_id);
  // No two slabs of the pools have the same id.
  if (!absl::IsNotFound(slab.status()) || t2_pool_ == nullptr) return slab;
  return t2_pool_->Share(tenant, slab_id);
}

absl::Status Node::StartServers() {
  NodeAddresses addresses;
  addresses.node_id = options_.node_id;
  addresses.data_host = options_.data_advertise;
  addresses.data_port = ports_.data;
  if (map_server_ != nullptr) {
    addresses.map_socket =
        std::filesystem::path(map_server_->path()).filename().string();
  }
  memory_service_ = std::make_unique<MemoryService>(
      MemoryService::Parts{
          &directory_, &pool_, &events_, &control_executor_,
          &compress_executor_, &decide_executor_, [this] { sweeper_->Poke(); },
          [this] { return CheckServing(); },
          [this](EvictionCall call) { return Decide(std::move(call)); }},
      addresses);
  admin_service_ = std::make_unique<AdminService>(
      AdminService::Parts{&directory_, &pool_, t2_pool_.get(), &data_plane_,
                          &events_, &scrubber_, &eviction_log_,
                          &scrub_executor_, &Clock::Boottime(),
                          [this](uint64_t id) { return ReplayLogged(id); },
                          [this] {
                            RefreshGauges();
                            return metrics_.Sums();
                          }},
      NodeIdentity{options_.node_id, transport_->capabilities().name,
                   static_cast<int>(options_.numa_node), options_.config});
  FARKV_ASSIGN_OR_RETURN(http_,
                         HttpServer::Start(options_.metrics_listen, metrics_,
                                           [this] { RefreshGauges(); }));
  FARKV_ASSIGN_OR_RETURN(admin_server_,
                         RpcServer::Start(options_.admin_listen, options_.tls,
                                          {admin_service_.get()}));
  FARKV_ASSIGN_OR_RETURN(
      server_,
      RpcServer::Start(options_.listen, options_.tls, {memory_service_.get()}));
  ports_.listen = server_->port();
  ports_.admin = admin_server_->port();
  ports_.metrics = http_->port();
  admin_server_->SetServing(true);
  return absl::OkStatus();
}

void Node::RefreshGauges() {
  data_plane_.ShowGauges();
  gauges_.Set(pool_.stats(),
              t2_pool_ == nullptr ? PagePoolStats{} : t2_pool_->stats(),
              directory_.stats(), transport_->counters());
}

void Node::StartPrefault(std::function<void()> on_prefaulted) {
  PoolFillerOptions options;
  options.threads = static_cast<int>(options_.threads);
  options.on_progress = [this](size_t) { fill_report_.Progress(SlabBytes()); };
  options.on_filled =
      [this, told = std::move(on_prefaulted)](const absl::Status& status) {
        if (!status.ok()) fill_failed_ = true;
        if (--pools_to_fill_ > 0) return;
        if (!fill_failed_) fill_report_.End(pool_.stats().huge_pages);
        if (told) told();
      };
  options.on_refill_error = [](const absl::Status& status) {
    spdlog::warn("no slab made ahead: {}", status.ToString());
  };
  fill_report_.Begin(options.threads, ports_.metrics);
  pools_to_fill_ = t2_pool_ == nullptr ? 1 : 2;
  if (t2_pool_ != nullptr) {
    t2_filler_ = std::make_unique<PoolFiller>(*t2_pool_, options);
  }
  filler_ = std::make_unique<PoolFiller>(pool_, std::move(options));
}

absl::Status Node::AwaitFilled() const {
  FARKV_RETURN_IF_ERROR(filler_->AwaitFilled());
  return t2_filler_ == nullptr ? absl::OkStatus() : t2_filler_->AwaitFilled();
}

size_t Node::SlabBytes() const {
  const size_t t2 = t2_pool_ == nullptr ? 0 : t2_pool_->stats().slab_bytes;
  return pool_.stats().slab_bytes + t2;
}

absl::Status Node::BeginServing() {
  const absl::Status filled = AwaitFilled();
  if (!filled.ok()) {
    return absl::Status(
        filled.code(),
        absl::StrCat(PoolFlags(options_), ": prefaulting ",
                     FormatBytes(PoolBytes(options_)), " ended at ",
                     FormatBytes(SlabBytes()), ", ",
                     FormatBytes(AvailableMemoryBytes(options_.huge_pages)),
                     " of memory are available here: ", filled.message()));
  }
  serving_ = true;
  const auto show = [this](const NodeState& state,
                           const std::vector<RevokedSession>&) {
    server_->SetServing(!state.draining);
    http_->SetReady(!state.draining);
  };
  readiness_subscription_ = events_.Subscribe(show);
  return absl::OkStatus();
}

absl::Status Node::CheckServing() const {
  if (serving_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "node ", options_.node_id, " is not ready: ", FormatBytes(SlabBytes()),
      " of ", FormatBytes(PoolBytes(options_)), " of its pool are prefaulted"));
}

DecideContext Node::DecisionContext() {
  return {directory_, attend_pool_, eviction_log_, Clock::Boottime()};
}

absl::StatusOr<EvictionReply> Node::Decide(EvictionCall call) {
  const absl::Time start = absl::Now();
  const int64_t rows = call.NumCandidates();
  absl::StatusOr<EvictionReply> reply =
      DecideEvictions(DecisionContext(), std::move(call));
  DecideMetrics& metrics = data_metrics_.decide;
  metrics.failures.Count(reply.status().code());
  if (!reply.ok()) return reply;
  metrics.requests.Increment();
  metrics.rows.Increment(static_cast<double>(rows));
  metrics.seconds.Observe(absl::ToDoubleSeconds(absl::Now() - start));
  return reply;
}

absl::StatusOr<Replay> Node::ReplayLogged(uint64_t decision_id) {
  FARKV_ASSIGN_OR_RETURN(const LoggedDecision decision,
                         eviction_log_.Find(decision_id));
  return ReplayDecision(DecisionContext(), decision);
}

size_t Node::Drain() {
  directory_.SetDraining(true);
  events_.Refresh();
  directory_.WaitUntilEmpty(options_.drain_grace);
  return directory_.summary().sessions;
}

Node::~Node() { Stop(); }

void Node::Stop() {
  filler_.reset();
  t2_filler_.reset();
  events_.Unsubscribe(readiness_subscription_);
  if (server_ != nullptr) server_->Shutdown(kCallGrace);
  if (admin_server_ != nullptr) admin_server_->Shutdown(kCallGrace);
  if (transport_ != nullptr) {
    transport_->Shutdown(kTransportGrace);
    WaitForTasks(data_executor_, options_.threads);
    WaitForTasks(attend_executor_, 1);
  }
  // Nobody pokes it any more; the last that may publish to what shows
  // readiness.
  sweeper_.reset();
  http_.reset();
  if (map_server_ != nullptr) map_server_->Stop();
}

}  // namespace farkv
