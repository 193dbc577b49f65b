#include "gpu_worker/tiering/node_link.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/telemetry/log.h"
#include "kernels/stream.h"

namespace farkv {
namespace {

absl::Status Mismatch(const std::string& address, const char* what,
                      const std::string& theirs, const std::string& ours) {
  return absl::FailedPreconditionError(
      absl::StrCat("memory node ", address, ": ", what, " is ", theirs,
                   ", the worker's is ", ours));
}

// The name comes from the node and must not lead out of the map directory.
bool IsPlainName(const std::string& name) {
  return name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

}  // namespace

NodeLink::NodeLink(NodeLinkOptions options, ControlCalls control,
                   const Clock& rates_clock)
    : options_(std::move(options)),
      control_(std::move(control)),
      rates_clock_(rates_clock),
      rates_(rates_clock),
      own_session_(std::make_shared<RemoteSession>()),
      granted_lease_(options_.tiering.lease) {
  own_session_->id = SessionId::Random();
}

absl::StatusOr<std::unique_ptr<NodeLink>> NodeLink::Connect(
    NodeLinkOptions options, const NodeAccess& access) {
  FARKV_ASSIGN_OR_RETURN(ControlCalls control, access.control(options.address));
  std::unique_ptr<NodeLink> link(
      new NodeLink(std::move(options), std::move(control), *access.clock));
  TransportOptions transport;
  transport.executor = link->options_.executor;
  transport.on_peer_lost = [self = link.get()](PeerId peer, absl::Status) {
    absl::MutexLock lock(&self->mutex_);
    self->last_lost_ = peer;  // perhaps before ConnectNow knows it
    if (peer == self->peer_) self->peer_lost_ = true;
  };
  FARKV_ASSIGN_OR_RETURN(link->transport_,
                         access.transport(std::move(transport)));
  FARKV_RETURN_IF_ERROR(link->ConnectNow());
  const PeerStats stats = link->Stats();
  spdlog::info("memory node {} at {}: epoch {}, cold reads by {}", stats.id,
               stats.address, stats.epoch.value, stats.transport);
  link->thread_ = std::thread([self = link.get()] { self->Main(); });
  link->heartbeat_thread_ =
      std::thread([self = link.get()] { self->HeartbeatMain(); });
  return link;
}

NodeLink::~NodeLink() { Stop(); }

void NodeLink::BeginStop() {
  absl::MutexLock lock(&mutex_);
  stop_ = true;
}

void NodeLink::Stop() {
  BeginStop();
  if (thread_.joinable()) thread_.join();
  // The heartbeats end last: they tell the closes above of a frozen node.
  {
    absl::MutexLock lock(&mutex_);
    heartbeats_stop_ = true;
  }
  if (heartbeat_thread_.joinable()) heartbeat_thread_.join();
  // Callbacks refer to this link until the transport is down.
  if (transport_ != nullptr) transport_->Shutdown(CallTimeout());
}

absl::Duration NodeLink::CallTimeout() const {
  return std::min(options_.tiering.rpc_timeout, granted_lease_ / 3);
}

// There are no leases to renew yet, and a machine may be busy with its start.
absl::Duration NodeLink::ConnectTimeout() const {
  return node_id_.empty() ? std::max(CallTimeout(), absl::Seconds(10))
                          : CallTimeout();
}

void NodeLink::SetFence(RemoteSession& session, absl::Time sent,
                        absl::Duration lease) const {
  session.fence_ns.store(absl::ToUnixNanos(sent + lease - lease / 10),
                         std::memory_order_release);
}

absl::Status NodeLink::CheckHandshake(const SessionGrant& grant) const {
  const std::string& address = options_.address;
  if (grant.handshake.protocol_version != kProtocolVersion) {
    return Mismatch(address, "protocol version",
                    absl::StrCat(grant.handshake.protocol_version),
                    absl::StrCat(kProtocolVersion));
  }
  if (grant.handshake.page_format_version != kPageFormatVersion) {
    return Mismatch(address, "page format version",
                    absl::StrCat(grant.handshake.page_format_version),
                    absl::StrCat(kPageFormatVersion));
  }
  // A node grants less than was asked for, and closes on who is silent.
  const absl::Duration heartbeat = options_.tiering.heartbeat;
  if (heartbeat > grant.lease / 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory node ", address, ": its leases last ",
        absl::FormatDuration(grant.lease), ", --heartbeat is ",
        absl::FormatDuration(heartbeat), ", must be at most half of that"));
  }
  const size_t stride = PageLayout::T1(options_.geometry).stride;
  if (grant.page_stride != stride) {
    return Mismatch(address, "page stride", absl::StrCat(grant.page_stride),
                    absl::StrCat(stride));
  }
  if (options_.tiering.exactness == ExactnessMode::kBitwise &&
      grant.handshake.kernel_target != KernelTarget()) {
    return Mismatch(address, "kernel target (--exactness=bitwise)",
                    grant.handshake.kernel_target, KernelTarget());
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionGrant> NodeLink::OpenOne(RemoteSession& session,
                                               bool continues) {
  OpenSessionCall call;
  call.handshake.page_format_version = kPageFormatVersion;
  call.handshake.kernel_target = KernelTarget();
  call.session = session.id;
  call.tenant = options_.tiering.tenant;
  call.worker_id = options_.tiering.worker_id;
  call.geometry = options_.geometry;
  call.bitwise = options_.tiering.exactness == ExactnessMode::kBitwise;
  call.lease = options_.tiering.lease;
  call.continues_request = continues;
  call.data_timeout = options_.tiering.fetch_timeout;
  const absl::Time sent = clock_.Now();
  FARKV_ASSIGN_OR_RETURN(SessionGrant grant,
                         control_.open_session(call, ConnectTimeout()));
  SetFence(session, sent, grant.lease);
  if (grant.resumed) {
    session.next_number =
        std::max(session.next_number, grant.last_sequence_number + 1);
  }
  return grant;
}

// Same host or not: the node's socket is in our map directory or it is not.
absl::Status NodeLink::ChooseMap(const SessionGrant& grant) {
  const TieringOptions& tiering = options_.tiering;
  const bool wanted =
      tiering.cold == ColdMode::kMap ||
      (tiering.cold == ColdMode::kAuto && !tiering.map_dir.empty());
  if (!wanted) return absl::OkStatus();
  if (!IsPlainName(grant.map_socket)) {
    return absl::FailedPreconditionError(
        absl::StrCat("memory node ", options_.address, " (", grant.node_id,
                     "): map socket '", absl::CHexEscape(grant.map_socket),
                     "' is no plain file name"));
  }
  const std::string path = absl::StrCat(tiering.map_dir, "/", grant.map_socket);
  const bool found =
      !grant.map_socket.empty() && access(path.c_str(), F_OK) == 0;
  if (!found && tiering.cold == ColdMode::kMap) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--cold=map: memory node ", options_.address, " (", grant.node_id,
        ") has no map socket in --map-dir ", tiering.map_dir));
  }
  // A ticket and the socket together must leave time to renew the leases.
  map_ = found ? std::make_unique<NodeMap>(path, CallTimeout() / 2) : nullptr;
  maps_.store(found, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status NodeLink::Hello(PeerId peer, const SessionGrant& grant) {
  struct Answer {
    absl::Notification done;
    absl::Status status;
  };
  auto answer = std::make_shared<Answer>();
  Request request;
  request.header.type = MessageType::kHelloRequest;
  request.header.session = own_session_->id;
  request.header.epoch = grant.epoch;
  request.timeout = ConnectTimeout();
  std::vector<std::byte> body(grant.token.size());
  std::transform(grant.token.begin(), grant.token.end(), body.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  request.body.push_back(BufferLease::Owning(std::move(body)));
  FARKV_RETURN_IF_ERROR(transport_
                            ->Submit(peer, std::move(request),
                                     [answer](absl::StatusOr<Message> reply) {
                                       answer->status =
                                           reply.ok() ? CheckMessage(
                                                            reply->header_bytes,
                                                            reply->body.bytes())
                                                      : reply.status();
                                       answer->done.Notify();
                                     })
                            .status());
  // The transport ends every operation by its deadline.
  answer->done.WaitForNotification();
  if (absl::IsDataLoss(answer->status)) Count(NodeFault::kDamagedAnswer);
  return answer->status;
}

absl::StatusOr<PeerId> NodeLink::ConnectData(const SessionGrant& grant) {
  const absl::StatusOr<PeerId> peer =
      transport_->Connect(grant.data_host, grant.data_port);
  absl::Status status = peer.status();
  if (peer.ok()) {
    status = Hello(*peer, grant);
    // Nobody knows what a damaged answer said; a second hello changes nothing.
    if (absl::IsDataLoss(status)) status = Hello(*peer, grant);
    if (status.ok()) return peer;
    transport_->ClosePeer(*peer);
  }
  return absl::Status(
      status.code(),
      absl::StrCat("memory node ", options_.address, " (", grant.node_id,
                   "): data plane at ", grant.data_host, ":", grant.data_port,
                   ": ", status.message()));
}

absl::Status NodeLink::ConnectNow() {
  FARKV_ASSIGN_OR_RETURN(const SessionGrant grant, OpenOne(*own_session_));
  const bool first = node_id_.empty();
  absl::Status status = TakeUp(grant, first);
  if (first && !status.ok()) {
    // Nobody asks this node again: it would wait a lease for its session.
    control_
        .close_session(own_session_->id, grant.epoch,
                       own_session_->next_number++, CallTimeout())
        .IgnoreError();
  }
  return status;
}

absl::Status NodeLink::TakeUp(const SessionGrant& grant, bool first) {
  FARKV_RETURN_IF_ERROR(CheckHandshake(grant));
  const bool restarted = !first && grant.epoch != epoch();
  if (first || restarted) FARKV_RETURN_IF_ERROR(ChooseMap(grant));
  FARKV_ASSIGN_OR_RETURN(const PeerId peer, ConnectData(grant));
  if (first) node_id_ = grant.node_id;
  granted_lease_ = grant.lease;
  const absl::Time now = clock_.Now();
  renewals_answered_ = now;
  // After a loss the sessions have waited for their renewal.
  next_renewal_ = sessions_.empty() ? now + grant.lease / 3 : now;
  {
    absl::MutexLock lock(&mutex_);
    grant_ = grant;
    peer_ = peer;
    peer_lost_ = last_lost_ == peer;
    healthy_ = true;
    last_answer_ = now;
    open_heartbeats_ = 0;
  }
  ShowFixedMode();
  if (Probes()) SendHeartbeat();  // the first sample
  if (restarted) {
    NoteDraining(false);
    LoseSessions(absl::UnavailableError(
        absl::StrCat("memory node ", options_.address, " has been restarted")));
  }
  return absl::OkStatus();
}

bool NodeLink::healthy() const {
  absl::MutexLock lock(&mutex_);
  return healthy_;
}

Epoch NodeLink::epoch() const {
  absl::MutexLock lock(&mutex_);
  return grant_.epoch;
}

void NodeLink::OpenSession(SequenceId sequence, SessionId session,
                           bool continues) {
  absl::MutexLock lock(&mutex_);
  commands_.push_back(OpenCommand{sequence, session, continues});
}

void NodeLink::Reserve(SequenceId sequence,
                       std::shared_ptr<RemoteSession> session,
                       std::vector<PageName> pages) {
  absl::MutexLock lock(&mutex_);
  commands_.push_back(
      ReserveCommand{sequence, std::move(session), std::move(pages)});
}

void NodeLink::ChangeTiers(SequenceId sequence,
                           std::shared_ptr<RemoteSession> session,
                           std::vector<TierChange> changes) {
  absl::MutexLock lock(&mutex_);
  commands_.push_back(
      ChangeCommand{sequence, std::move(session), std::move(changes)});
}

void NodeLink::Evict(SequenceId sequence,
                     std::shared_ptr<RemoteSession> session,
                     std::vector<PageEviction> evictions,
                     std::vector<PageName> free, std::vector<int32_t> pages) {
  absl::MutexLock lock(&mutex_);
  commands_.push_back(EvictCommand{sequence, std::move(session),
                                   std::move(evictions), std::move(free),
                                   std::move(pages)});
}

void NodeLink::CloseSession(std::shared_ptr<RemoteSession> session) {
  absl::MutexLock lock(&mutex_);
  commands_.push_back(CloseCommand{std::move(session)});
}

absl::StatusOr<EvictionReply> NodeLink::DecideEvictions(
    EvictionCall call, absl::Duration timeout) {
  if (!control_.decide_evictions) {
    return absl::UnimplementedError(
        absl::StrCat("memory node ", options_.address, " takes no decisions"));
  }
  if (!healthy()) {
    return absl::UnavailableError(
        absl::StrCat("memory node ", options_.address, " is lost"));
  }
  call.epoch = epoch();
  return control_.decide_evictions(call, timeout);
}

int NodeLink::pending() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(commands_.size()) + (running_ ? 1 : 0);
}

absl::Status NodeLink::Submit(MessageHeader header,
                              std::vector<BufferLease> body,
                              absl::Duration timeout, ReplyCallback callback) {
  PeerId peer;
  {
    absl::MutexLock lock(&mutex_);
    if (!healthy_) {
      return absl::UnavailableError(
          absl::StrCat("memory node ", options_.address, " is lost"));
    }
    peer = peer_;
    header.epoch = grant_.epoch;
  }
  Request request;
  request.header = header;
  request.body = std::move(body);
  request.timeout = timeout;
  // Any reply is a sign of life: heartbeats may have to wait behind others.
  absl::Status submitted =
      transport_
          ->Submit(peer, std::move(request),
                   [this, callback = std::move(callback)](
                       absl::StatusOr<Message> reply) mutable {
                     if (reply.ok()) NoteAnswer();
                     std::move(callback)(std::move(reply));
                     answered_.fetch_add(1, std::memory_order_release);
                   })
          .status();
  if (submitted.ok()) sent_.fetch_add(1, std::memory_order_release);
  return submitted;
}

void NodeLink::NoteAnswer() {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  last_answer_ = now;
  open_heartbeats_ = 0;
}

PeerStats NodeLink::Stats() const {
  PeerStats stats;
  stats.id = node_id_;
  stats.address = options_.address;
  stats.transport = maps() ? "map" : transport_->capabilities().name;
  stats.requests_answered = answered_.load(std::memory_order_acquire);
  stats.requests_sent = sent_.load(std::memory_order_acquire);
  const auto count = [this](NodeFault fault) {
    return faults_[static_cast<size_t>(fault)].load(std::memory_order_relaxed);
  };
  stats.damaged_answers = count(NodeFault::kDamagedAnswer);
  stats.repeated_fetches = count(NodeFault::kRepeatedFetch);
  stats.failed_fetches = count(NodeFault::kFailedFetch);
  stats.failed_stores = count(NodeFault::kFailedStore);
  stats.transfers = transport_->counters();
  stats.bytes_sent = stats.transfers.bytes_sent;
  stats.bytes_received = stats.transfers.bytes_received;
  const NodeFigures figures = rates_.Figures();
  stats.link_bytes_per_second = figures.link_bytes_per_second;
  stats.round_trip = figures.round_trip;
  stats.attend_rows_per_second = figures.attend_rows_per_second;
  const ColdChoice choice = rates_.choice();
  stats.cold_mode = ColdModeName(choice.mode);
  stats.cold_reason = ColdReasonName(choice.reason);
  absl::MutexLock lock(&mutex_);
  stats.healthy = healthy_;
  stats.epoch = grant_.epoch;
  stats.last_heartbeat = clock_.Now() - last_answer_;
  return stats;
}

}  // namespace farkv
