#include "common/transport/loopback_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

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

void LoopbackNetwork::State::Wake() {
  absl::MutexLock lock(&mutex);
  work = true;
}

bool LoopbackNetwork::State::IsFrozen(LoopbackNode* node) {
  absl::MutexLock lock(&mutex);
  return std::find(frozen.begin(), frozen.end(), node) != frozen.end();
}

bool LoopbackNetwork::State::Step() {
  std::vector<std::shared_ptr<LoopbackNode>> current;
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
  std::vector<LoopbackConnect> commands;
  std::map<uint16_t, LoopbackNode*> targets;
  {
    absl::MutexLock lock(&mutex);
    commands = std::exchange(connects, {});
    targets = listeners;
  }
  for (const LoopbackConnect& command : commands) {
    if (!command.from->table->CheckOpen(command.peer).ok()) continue;
    const auto target = targets.find(command.port);
    if (target == targets.end()) {
      command.from->table->FailPeer(
          command.peer, absl::UnavailableError("connection refused"), true);
      continue;
    }
    LoopbackNode* to = target->second;
    absl::StatusOr<PeerId> accepted =
        to->table->AddPeer(absl::StrCat("loopback:", command.peer.value));
    if (!accepted.ok()) {
      command.from->table->FailPeer(command.peer, accepted.status(), true);
      continue;
    }
    command.from->links[command.peer] = {to, *accepted};
    to->links[*accepted] = {command.from.get(), command.peer};
    to->table->Announce(*accepted);
  }
  return !commands.empty();
}

bool LoopbackNetwork::State::CloseFailed(LoopbackNode* node) {
  const std::vector<PeerId> closing = node->table->TakeClosing();
  for (PeerId peer : closing) {
    const auto link = node->links.find(peer);
    if (link != node->links.end()) {
      const LoopbackFarEnd far = link->second;
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
void LoopbackNetwork::State::Disconnect(LoopbackNode* node, PeerId peer) {
  node->links.erase(peer);
  for (std::vector<LoopbackPacket>* packets : {&in_flight, &arrived}) {
    const auto kept = std::stable_partition(
        packets->begin(), packets->end(), [&](const LoopbackPacket& packet) {
          return packet.from != node || packet.message.peer != peer;
        });
    const std::vector<LoopbackPacket> dropped(kept, packets->end());
    packets->erase(kept, packets->end());
    for (const LoopbackPacket& packet : dropped) {
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
  const std::vector<LoopbackPacket> finished = std::exchange(arrived, {});
  for (const LoopbackPacket& packet : finished) {
    packet.from->table->SendFinal(packet.message.slot, absl::OkStatus());
  }
  return !finished.empty();
}

bool LoopbackNetwork::State::DeliverPackets() {
  std::vector<LoopbackPacket> waiting;
  bool active = false;
  for (LoopbackPacket& packet : std::exchange(in_flight, {})) {
    const auto link = packet.from->links.find(packet.message.peer);
    if (link == packet.from->links.end()) {
      if (packet.from->table->CheckOpen(packet.message.peer).ok()) {
        waiting.push_back(packet);  // its Connect comes in the next round
      } else {
        packet.from->table->SendFinal(packet.message.slot,
                                      absl::UnavailableError("not connected"));
      }
      continue;
    }
    const LoopbackFarEnd far = link->second;
    if (IsFrozen(far.node)) {
      waiting.push_back(packet);
      continue;
    }
    active = true;
    absl::StatusOr<Message> message = CopyMessage(packet.message);
    if (!message.ok()) {
      far.node->table->CountDropped();
      if (!HasMagic(*packet.message.header)) {
        far.node->table->FailPeer(far.peer, message.status(), true);
      }
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
  std::vector<std::shared_ptr<LoopbackNode>> gone;
  {
    absl::MutexLock lock(&mutex);
    for (LoopbackNode* node : std::exchange(detaching, {})) {
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
  std::vector<std::shared_ptr<LoopbackNode>> current;
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

}  // namespace farkv
