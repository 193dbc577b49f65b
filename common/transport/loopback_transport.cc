#include "common/transport/loopback_transport.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/loopback_state.h"
#include "common/transport/operation_table.h"

namespace farkv {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(LoopbackNetwork::State* network, TransportOptions options)
      : network_(network), node_(std::make_shared<LoopbackNode>()) {
    node_->clock = options.clock;
    node_->table = OperationTable::Create(std::move(options),
                                          [network] { network->Wake(); });
    absl::MutexLock lock(&network_->mutex);
    network_->nodes.push_back(node_);
  }

  ~LoopbackTransport() override {
    Shutdown(absl::ZeroDuration());
    node_->table->StopHandlers(absl::InfiniteDuration());
  }

  absl::StatusOr<uint16_t> Listen(const std::string& host,
                                  uint16_t port) override;
  absl::StatusOr<PeerId> Connect(const std::string& host,
                                 uint16_t port) override;
  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    return node_->table->Submit(peer, std::move(request), std::move(callback));
  }
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body) override {
    return node_->table->Reply(peer, header, std::move(body));
  }
  void Cancel(OperationId operation) override {
    node_->table->Cancel(operation);
  }
  void ClosePeer(PeerId peer) override {
    node_->table->FailPeer(peer, absl::UnavailableError("closed"), false);
  }
  void Shutdown(absl::Duration grace) override;
  TransportCapabilities capabilities() const override {
    return {"loopback", false, kMaxBodyBytes};
  }
  TransportCounters counters() const override {
    return node_->table->counters();
  }

 private:
  LoopbackNetwork::State* const network_;
  const std::shared_ptr<LoopbackNode> node_;
};

absl::StatusOr<uint16_t> LoopbackTransport::Listen(const std::string& host,
                                                   uint16_t port) {
  absl::MutexLock lock(&network_->mutex);
  if (port == 0) {
    while (network_->listeners.contains(network_->next_port)) {
      ++network_->next_port;
    }
    port = network_->next_port++;
  }
  if (!network_->listeners.emplace(port, node_.get()).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen on ", host, ": port ", port, " is taken"));
  }
  return port;
}

absl::StatusOr<PeerId> LoopbackTransport::Connect(const std::string& host,
                                                  uint16_t port) {
  FARKV_ASSIGN_OR_RETURN(const PeerId peer,
                         node_->table->AddPeer(absl::StrCat(host, ":", port)));
  {
    absl::MutexLock lock(&network_->mutex);
    network_->connects.push_back({node_, peer, port});
    network_->work = true;
  }
  return peer;
}

void LoopbackTransport::Shutdown(absl::Duration grace) {
  if (node_->detached.HasBeenNotified()) return;
  const bool stepped = network_->drive == LoopbackNetwork::Drive::kSteps;
  node_->table->BeginShutdown();
  if (stepped) {
    while (network_->Step()) {
    }
  } else {
    node_->table->WaitIdle(grace);
  }
  node_->table->FailAllPeers(absl::UnavailableError("transport closed"));
  {
    absl::MutexLock lock(&network_->mutex);
    network_->detaching.push_back(node_.get());
    network_->work = true;
  }
  while (stepped && !node_->detached.HasBeenNotified()) network_->Step();
  node_->detached.WaitForNotification();
  node_->table->StopHandlers(stepped ? absl::ZeroDuration() : grace);
}

LoopbackNetwork::LoopbackNetwork(Drive drive)
    : state_(std::make_unique<State>(drive)) {
  if (drive == Drive::kThread) {
    state_->thread = std::thread([state = state_.get()] { state->Main(); });
  }
}

LoopbackNetwork::~LoopbackNetwork() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stop = true;
  }
  if (state_->thread.joinable()) state_->thread.join();
}

std::unique_ptr<Transport> LoopbackNetwork::CreateTransport(
    TransportOptions options) {
  return std::make_unique<LoopbackTransport>(state_.get(), std::move(options));
}

bool LoopbackNetwork::Step() { return state_->Step(); }

void LoopbackNetwork::SetFrozen(uint16_t port, bool frozen) {
  absl::MutexLock lock(&state_->mutex);
  const auto found = state_->listeners.find(port);
  if (found == state_->listeners.end()) return;
  std::erase(state_->frozen, found->second);
  if (frozen) state_->frozen.push_back(found->second);
  state_->work = true;
}

void LoopbackNetwork::HoldSends(bool hold) {
  absl::MutexLock lock(&state_->mutex);
  state_->hold_sends = hold;
  state_->work = true;
}

}  // namespace farkv
