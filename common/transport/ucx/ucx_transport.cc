#include "common/transport/ucx/ucx_transport.h"

#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/transport/operation_table.h"
#include "common/transport/ucx/progress_engine.h"
#include "common/transport/ucx/receive_buffers.h"
#include "common/transport/ucx/socket_address.h"

namespace farkv {
namespace {

bool UsesRdma(const std::string& tls) {
  for (absl::string_view name : absl::StrSplit(tls, ',')) {
    for (const char* rdma : {"rc", "ud", "dc", "ib", "rdma"}) {
      if (absl::StartsWith(name, rdma)) return true;
    }
  }
  return false;
}

class UcxTransport final : public Transport {
 public:
  UcxTransport(TransportOptions options, UcxOptions ucx)
      : ucx_(std::move(ucx)),
        engine_options_(options.clock,
                        options.max_operations + OperationTable::kRefusalSlots,
                        options.spin),
        table_(OperationTable::Create(std::move(options), [this] { Wake(); })),
        buffers_(std::make_shared<ReceiveBuffers>(ucx_.kept_buffer_bytes,
                                                  ucx_.max_incoming_bytes)),
        resolver_(ucx_.resolve_timeout, ucx_.lookup) {}

  ~UcxTransport() override {
    Shutdown(absl::ZeroDuration());
    table_->StopHandlers(absl::InfiniteDuration());
  }

  absl::StatusOr<uint16_t> Listen(const std::string& host,
                                  uint16_t port) override;
  absl::StatusOr<PeerId> Connect(const std::string& host,
                                 uint16_t port) override;
  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    return table_->Submit(peer, std::move(request), std::move(callback));
  }
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body) override {
    return table_->Reply(peer, header, std::move(body));
  }
  void Cancel(OperationId operation) override { table_->Cancel(operation); }
  void ClosePeer(PeerId peer) override {
    table_->FailPeer(peer, absl::UnavailableError("closed"), false);
  }
  void Shutdown(absl::Duration grace) override;
  TransportCapabilities capabilities() const override {
    const bool rdma = UsesRdma(ucx_.tls);
    return {rdma ? "rdma" : "tcp", rdma, kMaxBodyBytes};
  }
  TransportCounters counters() const override {
    TransportCounters counters = table_->counters();
    counters.receive_buffer_bytes = buffers_->lent_bytes();
    return counters;
  }

 private:
  // The engine, started if it is the first use.
  absl::StatusOr<ProgressEngine*> EngineFor(const SocketAddress& address);
  void Wake() {
    ProgressEngine* engine = running_.load(std::memory_order_acquire);
    if (engine != nullptr) engine->Wake();
  }

  const UcxOptions ucx_;
  const ProgressEngine::Options engine_options_;
  const std::shared_ptr<OperationTable> table_;
  const std::shared_ptr<ReceiveBuffers> buffers_;
  const NameResolver resolver_;

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool loopback_only_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ProgressEngine> engine_ ABSL_GUARDED_BY(mutex_);
  std::atomic<ProgressEngine*> running_{nullptr};  // engine_, without the lock
};

absl::StatusOr<ProgressEngine*> UcxTransport::EngineFor(
    const SocketAddress& address) {
  // Held while UCX starts: everybody who could want it needs the engine.
  absl::MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("transport is closed");
  if (engine_ == nullptr) {
    loopback_only_ = ucx_.net_devices.empty() && address.is_loopback();
    FARKV_ASSIGN_OR_RETURN(
        engine_, ProgressEngine::Start(table_, engine_options_, buffers_, ucx_,
                                       loopback_only_));
    running_.store(engine_.get(), std::memory_order_release);
  }
  if (loopback_only_ && !address.is_loopback()) {
    return absl::FailedPreconditionError(absl::StrCat(
        address.ToString(),
        " cannot be reached: the transport was bound to "
        "the loopback interface by its first address; set net_devices"));
  }
  return engine_.get();
}

absl::StatusOr<uint16_t> UcxTransport::Listen(const std::string& host,
                                              uint16_t port) {
  FARKV_ASSIGN_OR_RETURN(const SocketAddress address,
                         resolver_.Resolve(host, port));
  FARKV_ASSIGN_OR_RETURN(ProgressEngine * engine, EngineFor(address));
  return engine->Listen(address);
}

absl::StatusOr<PeerId> UcxTransport::Connect(const std::string& host,
                                             uint16_t port) {
  FARKV_ASSIGN_OR_RETURN(const SocketAddress address,
                         resolver_.Resolve(host, port));
  FARKV_ASSIGN_OR_RETURN(ProgressEngine * engine, EngineFor(address));
  return engine->Connect(address, absl::StrCat(host, ":", port));
}

// Gate closes, queued work is cancelled, posted work gets its time, then
// connections are closed by force and UCX is destroyed.
void UcxTransport::Shutdown(absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
  }
  table_->BeginShutdown();
  table_->WaitIdle(grace);
  table_->FailAllPeers(absl::UnavailableError("transport closed"));
  ProgressEngine* engine = running_.load(std::memory_order_acquire);
  if (engine != nullptr) engine->Stop();
  table_->StopHandlers(grace);
}

absl::Status CheckOptions(const TransportOptions& options,
                          const UcxOptions& ucx) {
  if (options.executor == nullptr) {
    return absl::InvalidArgumentError("transport options name no executor");
  }
  if (ucx.tls.empty()) {
    return absl::InvalidArgumentError("UCX options name no transport (tls)");
  }
  if (ucx.resolve_timeout <= absl::ZeroDuration() || !ucx.lookup) {
    return absl::InvalidArgumentError(
        absl::StrCat("names must be looked up within a positive time, is ",
                     absl::FormatDuration(ucx.resolve_timeout)));
  }
  if (ucx.tcp_send_segment_bytes < 1024 ||
      ucx.tcp_receive_segment_bytes < ucx.tcp_send_segment_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TCP segments must be at least 1024 bytes and the receiver's no "
        "smaller than the sender's, are ",
        ucx.tcp_send_segment_bytes, " and ", ucx.tcp_receive_segment_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> CreateUcxTransport(
    TransportOptions options, UcxOptions ucx) {
  FARKV_RETURN_IF_ERROR(CheckOptions(options, ucx));
  return std::make_unique<UcxTransport>(std::move(options), std::move(ucx));
}

}  // namespace farkv
