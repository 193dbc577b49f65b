#include "common/transport/loopback_transport.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/transport/operation_table.h"

namespace farkv {
namespace {

struct Node;

// The far end of a connection. Driver only.
struct FarEnd {
  Node* node = nullptr;
  PeerId peer;
};

// One transport as the network sees it.
struct Node {
  std::shared_ptr<OperationTable> table;
  const Clock* clock = nullptr;
  absl::Notification detached;
  std::map<PeerId, FarEnd> links;  // driver only
};

struct Packet {
  Node* from = nullptr;
  OperationTable::Outgoing message;
};

struct ConnectCommand {
  Node* from = nullptr;
  PeerId peer;
  uint16_t port = 0;
};

// A copy of the message as it would arrive, or an error for a bad header.
absl::StatusOr<Message> CopyMessage(const OperationTable::Outgoing& outgoing) {
  Message message;
  FARKV_ASSIGN_OR_RETURN(message.header, DecodeHeader(*outgoing.header));
  message.header_bytes = *outgoing.header;
  std::vector<std::byte> body;
  body.reserve(message.header.body_bytes);
  for (const BufferLease& piece : outgoing.body) {
    body.insert(body.end(), piece.bytes().begin(), piece.bytes().end());
  }
  message.body = BufferLease::Owning(std::move(body));
  return message;
}

}  // namespace

struct LoopbackNetwork::State {
  explicit State(Drive how) : drive(how) {}

  bool Step();
  bool RunCommands();
  bool CloseFailed(Node* node);
  void Disconnect(Node* node, PeerId peer);
  bool FinishSends();
  bool DeliverPackets();
  bool Detach();
  void Main();
  absl::Time NextWake();
  bool IsFrozen(Node* node);
  void Wake();

  const Drive drive;
  std::thread thread;
  std::vector<Packet> in_flight;  // driver only
  std::vector<Packet> arrived;    // driver only: sends to be made final

  absl::Mutex mutex;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool work ABSL_GUARDED_BY(mutex) = false;
  bool hold_sends ABSL_GUARDED_BY(mutex) = false;
  uint16_t next_port ABSL_GUARDED_BY(mutex) = 40000;
  std::vector<std::shared_ptr<Node>> nodes ABSL_GUARDED_BY(mutex);
  std::vector<Node*> frozen ABSL_GUARDED_BY(mutex);
  std::map<uint16_t, Node*> listeners ABSL_GUARDED_BY(mutex);
  // Bounded by the peers of the nodes.
  std::vector<ConnectCommand> connects ABSL_GUARDED_BY(mutex);
  std::vector<Node*> detaching ABSL_GUARDED_BY(mutex);
};

void LoopbackNetwork::State::Wake() {
  absl::MutexLock lock(&mutex);
  work = true;
}

bool LoopbackNetwork::State::IsFrozen(Node* node) {
  absl::MutexLock lock(&mutex);
  return std::find(frozen.begin(), frozen.end(), node) != frozen.end();
}

bool LoopbackNetwork::State::Step() {
  std::vector<std::shared_ptr<Node>> current;
  {
    absl::MutexLock lock(&mutex);
    current = nodes;
  }
  bool active = RunCommands();
  for (const auto& node : current) active |= CloseFailed(node.get());
  active |= FinishSends();
  for (const auto& node : current) {
    if (IsFrozen(node.get())) continue;
    node->table->Expire();
    for (const auto& outgoing : node->table->TakeQueued()) {
      in_flight.push_back({node.get(), outgoing});
    }
  }
  active |= DeliverPackets();
  active |= Detach();
  return active;
}

bool LoopbackNetwork::State::RunCommands() {
  std::vector<ConnectCommand> commands;
  std::map<uint16_t, Node*> targets;
  {
    absl::MutexLock lock(&mutex);
    commands = std::exchange(connects, {});
    targets = listeners;
  }
  for (const ConnectCommand& command : commands) {
    if (!command.from->table->CheckOpen(command.peer).ok()) continue;
    const auto target = targets.find(command.port);
    if (target == targets.end()) {
      command.from->table->FailPeer(
          command.peer, absl::UnavailableError("connection refused"), true);
      continue;
    }
    Node* to = target->second;
    absl::StatusOr<PeerId> accepted =
        to->table->AddPeer(absl::StrCat("loopback:", command.peer.value));
    if (!accepted.ok()) {
      command.from->table->FailPeer(command.peer, accepted.status(), true);
      continue;
    }
    command.from->links[command.peer] = {to, *accepted};
    to->links[*accepted] = {command.from, command.peer};
  }
  return !commands.empty();
}

bool LoopbackNetwork::State::CloseFailed(Node* node) {
  const std::vector<PeerId> closing = node->table->TakeClosing();
  for (PeerId peer : closing) {
    const auto link = node->links.find(peer);
    if (link != node->links.end()) {
      const FarEnd far = link->second;
      Disconnect(node, peer);
      Disconnect(far.node, far.peer);
      far.node->table->FailPeer(
          far.peer, absl::UnavailableError("connection closed by peer"), true);
    }
    node->table->RemovePeer(peer);
  }
  return !closing.empty();
}

// Ends what is under way on one end of a connection.
void LoopbackNetwork::State::Disconnect(Node* node, PeerId peer) {
  node->links.erase(peer);
  for (std::vector<Packet>* packets : {&in_flight, &arrived}) {
    const auto kept = std::stable_partition(
        packets->begin(), packets->end(), [&](const Packet& packet) {
          return packet.from != node || packet.message.peer != peer;
        });
    const std::vector<Packet> dropped(kept, packets->end());
    packets->erase(kept, packets->end());
    for (const Packet& packet : dropped) {
      node->table->SendFinal(packet.message.slot,
                             absl::UnavailableError("connection closed"));
    }
  }
}

bool LoopbackNetwork::State::FinishSends() {
  {
    absl::MutexLock lock(&mutex);
    if (hold_sends) return false;
  }
  const std::vector<Packet> finished = std::exchange(arrived, {});
  for (const Packet& packet : finished) {
    packet.from->table->SendFinal(packet.message.slot, absl::OkStatus());
  }
  return !finished.empty();
}

bool LoopbackNetwork::State::DeliverPackets() {
  std::vector<Packet> waiting;
  bool active = false;
  for (Packet& packet : std::exchange(in_flight, {})) {
    const auto link = packet.from->links.find(packet.message.peer);
    if (link == packet.from->links.end()) {  // failed since it was taken
      packet.from->table->SendFinal(packet.message.slot,
                                    absl::UnavailableError("not connected"));
      continue;
    }
    const FarEnd far = link->second;
    if (IsFrozen(far.node)) {
      waiting.push_back(packet);
      continue;
    }
    active = true;
    absl::StatusOr<Message> message = CopyMessage(packet.message);
    if (!message.ok()) {
      far.node->table->CountDropped();
      far.node->table->FailPeer(far.peer, message.status(), true);
    } else if (far.node->table->Admit(far.peer, message->header)) {
      far.node->table->Deliver(far.peer, *std::move(message));
    }
    arrived.push_back(packet);
  }
  in_flight.insert(in_flight.end(), waiting.begin(), waiting.end());
  return active;
}

// Runs after CloseFailed, in a later round than FailAllPeers.
bool LoopbackNetwork::State::Detach() {
  std::vector<std::shared_ptr<Node>> gone;
  {
    absl::MutexLock lock(&mutex);
    for (Node* node : std::exchange(detaching, {})) {
      std::erase_if(listeners,
                    [node](const auto& entry) { return entry.second == node; });
      if (!node->links.empty() || node->table->HasWork()) {
        detaching.push_back(node);
        continue;
      }
      const auto found = std::find_if(
          nodes.begin(), nodes.end(),
          [node](const auto& candidate) { return candidate.get() == node; });
      gone.push_back(std::move(*found));
      nodes.erase(found);
      std::erase(frozen, node);
    }
  }
  for (const auto& node : gone) node->detached.Notify();
  return !gone.empty();
}

absl::Time LoopbackNetwork::State::NextWake() {
  std::vector<std::shared_ptr<Node>> current;
  {
    absl::MutexLock lock(&mutex);
    current = nodes;
  }
  absl::Duration shortest = absl::InfiniteDuration();
  for (const auto& node : current) {
    if (IsFrozen(node.get())) continue;
    shortest =
        std::min(shortest, node->table->NextDeadline() - node->clock->Now());
  }
  return absl::Now() + shortest;
}

void LoopbackNetwork::State::Main() {
  for (;;) {
    const bool active = Step();
    const absl::Time wake_at = active ? absl::InfinitePast() : NextWake();
    absl::MutexLock lock(&mutex);
    auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return work || stop;
    };
    mutex.AwaitWithDeadline(absl::Condition(&woken), wake_at);
    if (stop) return;
    work = false;
  }
}

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(LoopbackNetwork::State* network, TransportOptions options)
      : network_(network), node_(std::make_shared<Node>()) {
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
  const std::shared_ptr<Node> node_;
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
    network_->connects.push_back({node_.get(), peer, port});
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
