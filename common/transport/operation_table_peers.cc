// Peers and receiving: the other half of OperationTable.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/operation_table.h"

namespace farkv {
namespace {

MessageType ReplyTypeOf(MessageType request) {
  return static_cast<MessageType>(static_cast<uint16_t>(request) + 1);
}

// A refusal may come from another epoch: that is what it then says.
bool Fits(const MessageHeader& reply, const MessageHeader& request) {
  const bool epoch_fits = request.epoch == Epoch() ||
                          reply.epoch == request.epoch ||
                          reply.code != absl::StatusCode::kOk;
  return reply.type == ReplyTypeOf(request.type) &&
         reply.session == request.session && reply.layer == request.layer &&
         reply.step == request.step && epoch_fits;
}

// Whether a reply's code is what its sender wrote. That of an error is all that
// its requester gets, so it is checked here; such a reply has no body, or a
// short one, and what has more is no such reply. Of others the requester checks
// the whole message.
bool IsBelieved(const Message& message) {
  constexpr size_t kMaxErrorBytes = 4096;
  if (message.header.code == absl::StatusCode::kOk) return true;
  const std::span<const std::byte> body = message.body.bytes();
  return body.size() <= kMaxErrorBytes &&
         CheckMessage(message.header_bytes, body).ok();
}

}  // namespace

OperationTable::Peer::Peer(std::string peer_name,
                           const TransportOptions& options)
    : name(std::move(peer_name)),
      requests(options.max_operations_per_peer,
               options.max_bytes_in_flight_per_peer),
      // Refusals must not take the places of answers, see Refuse.
      replies(2 * options.max_operations_per_peer,
              options.max_bytes_in_flight_per_peer),
      incoming(options.max_operations_per_peer,
               options.max_bytes_in_flight_per_peer) {}

absl::StatusOr<PeerId> OperationTable::AddPeer(std::string name) {
  absl::MutexLock lock(&mutex_);
  if (shutdown_) return absl::UnavailableError("transport is shutting down");
  uint32_t index = 0;
  uint32_t generation = 1;
  if (!free_peers_.empty()) {
    index = free_peers_.back();
    free_peers_.pop_back();
    generation = peers_[index].generation + 1;
    peers_[index] = Peer(std::move(name), options_);
  } else if (peers_.size() < static_cast<size_t>(options_.max_peers)) {
    index = static_cast<uint32_t>(peers_.size());
    peers_.emplace_back(std::move(name), options_);
  } else {
    return absl::ResourceExhaustedError(absl::StrCat("all ", options_.max_peers,
                                                     " peers are used, ", name,
                                                     " is one too many"));
  }
  peers_[index].generation = generation;
  return PeerId{(uint64_t{generation} << 32) | index};
}

// A task of the peer, so that on_peer_lost comes after it.
void OperationTable::Announce(PeerId peer) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    Peer* entry = FindPeer(peer);
    if (entry == nullptr || entry->lost || !options_.on_peer_connected) return;
    ++entry->tasks;
    effects.tasks.push_back([self = shared_from_this(), peer] {
      {
        const Gate::Pass pass = self->handlers_.TryEnter();
        if (pass) self->options_.on_peer_connected(peer);
      }
      self->TaskDone(peer);
    });
  }
  Run(std::move(effects));
}

OperationTable::Peer* OperationTable::FindPeer(PeerId peer) {
  const uint64_t index = peer.value & kIndexMask;
  if (index >= peers_.size()) return nullptr;
  Peer& entry = peers_[index];
  const bool current = entry.used && entry.generation == peer.value >> 32;
  return current ? &entry : nullptr;
}

absl::Status OperationTable::CheckPeer(PeerId peer) {
  const Peer* entry = FindPeer(peer);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("peer ", peer.value & kIndexMask,
                                            " of generation ", peer.value >> 32,
                                            " is not connected"));
  }
  return entry->lost ? entry->why : absl::OkStatus();
}

absl::Status OperationTable::CheckOpen(PeerId peer) {
  absl::MutexLock lock(&mutex_);
  return CheckPeer(peer);
}

void OperationTable::FailPeer(PeerId peer, absl::Status why, bool report) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    Fail(peer, why, report, &effects);
  }
  Run(std::move(effects));
}

void OperationTable::FailAllPeers(const absl::Status& why) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    for (uint32_t i = 0; i < peers_.size(); ++i) {
      const PeerId peer{(uint64_t{peers_[i].generation} << 32) | i};
      if (FindPeer(peer) != nullptr) Fail(peer, why, false, &effects);
    }
  }
  Run(std::move(effects));
}

void OperationTable::Fail(PeerId peer, const absl::Status& why, bool report,
                          Effects* effects) {
  Peer* entry = FindPeer(peer);
  if (entry == nullptr || entry->lost) return;
  entry->lost = true;
  entry->report = report && options_.on_peer_lost != nullptr;
  // Whatever the reason, to the owner of an operation the peer is unavailable.
  entry->why = absl::UnavailableError(
      absl::StrCat("peer ", entry->name, ": ", why.message()));
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot& operation = slots_[slot];
    if (operation.peer != peer || operation.completed) continue;
    if (operation.state == State::kQueued ||
        operation.state == State::kPosted) {
      Complete(slot, entry->why, effects);
    }
  }
  closing_.push_back(peer);
  effects->wake = true;
  MaybeRetire(peer, effects);
}

std::vector<PeerId> OperationTable::TakeClosing() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(closing_, {});
}

void OperationTable::RemovePeer(PeerId peer) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    Peer* entry = FindPeer(peer);
    if (entry == nullptr) return;
    entry->closed = true;
    MaybeRetire(peer, &effects);
  }
  Run(std::move(effects));
}

void OperationTable::TaskDone(PeerId peer) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    --FindPeer(peer)->tasks;
    MaybeRetire(peer, &effects);
  }
  Run(std::move(effects));
}

// on_peer_lost comes after the last callback and handler of the peer; its
// place is used again once the driver is done with it too.
void OperationTable::MaybeRetire(PeerId peer, Effects* effects) {
  Peer* entry = FindPeer(peer);
  if (!entry->lost || entry->tasks > 0) return;
  if (entry->report) {
    entry->report = false;
    effects->tasks.push_back(
        [self = shared_from_this(), peer, why = entry->why]() {
          const Gate::Pass pass = self->handlers_.TryEnter();
          if (pass) self->options_.on_peer_lost(peer, why);
        });
  }
  if (!entry->closed || entry->slots > 0) return;
  entry->used = false;
  free_peers_.push_back(static_cast<uint32_t>(peer.value & kIndexMask));
}

bool OperationTable::StopHandlers(absl::Duration timeout) {
  handlers_.Close();
  return handlers_.WaitUntilEmpty(timeout);
}

bool OperationTable::Admit(PeerId from, const MessageHeader& header) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    Peer* peer = FindPeer(from);
    if (peer == nullptr || peer->lost) {
      ++counters_.dropped_messages;
      return false;
    }
    if (IsReply(header.type)) {
      Slot* slot = FindReplied(from, header);
      if (slot == nullptr) {
        ++counters_.dropped_messages;
        return false;
      }
      slot->reply_arriving = true;
      return true;
    }
    if (!options_.on_request || shutdown_) {
      refused = absl::UnavailableError("");
    } else {
      refused = peer->incoming.TryAcquire(header.body_bytes);
    }
    if (refused.ok()) return true;
    ++counters_.dropped_messages;
  }
  Refuse(from, header, refused.code());
  return false;
}

// Answers without a handler. When not even this can be queued, the requester
// runs into its deadline.
void OperationTable::Refuse(PeerId from, const MessageHeader& request,
                            absl::StatusCode code) {
  {
    absl::MutexLock lock(&mutex_);
    const Peer* peer = FindPeer(from);
    if (peer == nullptr ||
        peer->replies.operations() >= options_.max_operations_per_peer) {
      return;
    }
  }
  MessageHeader reply = request;
  reply.type = ReplyTypeOf(request.type);
  reply.code = code;
  QueueReply(from, reply, {}).IgnoreError();
}

OperationTable::Slot* OperationTable::FindReplied(PeerId from,
                                                  const MessageHeader& header) {
  Slot* slot = FindOperation(OperationId{header.request_id});
  if (slot == nullptr || slot->peer != from || slot->completed ||
      slot->reply_arriving || slot->state != State::kPosted ||
      !Fits(header, slot->request)) {
    return nullptr;
  }
  return slot;
}

void OperationTable::Deliver(PeerId from, Message message) {
  if (IsReply(message.header.type)) {
    DeliverReply(from, std::move(message));
  } else {
    DeliverRequest(from, std::move(message));
  }
}

void OperationTable::DeliverRequest(PeerId from, Message message) {
  // The credit goes back with the body, so the window bounds what the handler
  // and the executor's queue can hold of one peer.
  const std::span<std::byte> bytes = message.body.bytes();
  const size_t size = message.header.body_bytes;
  message.body =
      BufferLease(bytes, [self = shared_from_this(), from, size,
                          storage = std::move(message.body)]() mutable {
        storage = BufferLease();
        self->ReleaseIncoming(from, size);
      });
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    counters_.bytes_received += kMessageHeaderBytes + size;
    Peer* peer = FindPeer(from);
    if (peer == nullptr || peer->lost) {
      ++counters_.dropped_messages;
      effects.released.push_back(std::move(message.body));
    } else {
      ++peer->tasks;
      effects.tasks.push_back([self = shared_from_this(), from,
                               incoming = std::move(message),
                               arrived = options_.clock->Now()]() mutable {
        {
          const Gate::Pass pass = self->handlers_.TryEnter();
          if (pass && self->BeginRequest(from)) {
            self->options_.on_request(
                Incoming{from, std::move(incoming), arrived});
          }
        }
        self->TaskDone(from);
      });
    }
  }
  Run(std::move(effects));
}

void OperationTable::DeliverReply(PeerId from, Message message) {
  const bool believed = IsBelieved(message);
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    counters_.bytes_received += kMessageHeaderBytes + message.header.body_bytes;
    Slot* slot = FindOperation(OperationId{message.header.request_id});
    if (slot == nullptr || slot->peer != from || slot->completed) {
      ++counters_.dropped_messages;  // answered otherwise in the meantime
      effects.released.push_back(std::move(message.body));
    } else if (const absl::StatusCode code = message.header.code;
               code != absl::StatusCode::kOk) {
      effects.released.push_back(std::move(message.body));
      const std::string what =
          absl::StrCat("answered by peer ", FindPeer(from)->name,
                       " to message type ", slot->request.type);
      Complete(IndexOf(slot),
               believed
                   ? absl::Status(code, what)
                   : absl::DataLossError(absl::StrCat("damaged error, ", what)),
               &effects);
    } else {
      Complete(IndexOf(slot), std::move(message), &effects);
    }
  }
  Run(std::move(effects));
}

void OperationTable::AbandonReceive(PeerId from, const MessageHeader& header) {
  absl::MutexLock lock(&mutex_);
  ++counters_.dropped_messages;
  if (!IsReply(header.type)) {
    Peer* peer = FindPeer(from);
    if (peer != nullptr) peer->incoming.Release(header.body_bytes);
    return;
  }
  Slot* slot = FindOperation(OperationId{header.request_id});
  if (slot != nullptr && slot->peer == from) slot->reply_arriving = false;
}

void OperationTable::RefuseReceive(PeerId from, const MessageHeader& header) {
  if (!IsReply(header.type)) {
    AbandonReceive(from, header);
    Refuse(from, header, absl::StatusCode::kResourceExhausted);
    return;
  }
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    ++counters_.dropped_messages;
    Slot* slot = FindOperation(OperationId{header.request_id});
    if (slot != nullptr && slot->peer == from && !slot->completed) {
      Complete(IndexOf(slot),
               absl::ResourceExhaustedError(absl::StrCat(
                   "no memory is left for a reply of ", header.body_bytes,
                   " bytes from peer ", FindPeer(from)->name)),
               &effects);
    }
  }
  Run(std::move(effects));
}

void OperationTable::ReleaseIncoming(PeerId peer, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  Peer* entry = FindPeer(peer);
  if (entry != nullptr) entry->incoming.Release(bytes);
}

bool OperationTable::BeginRequest(PeerId from) {
  absl::MutexLock lock(&mutex_);
  const bool wanted = CheckPeer(from).ok();
  ++(wanted ? counters_.requests_received : counters_.dropped_messages);
  return wanted;
}

void OperationTable::CountDropped() {
  absl::MutexLock lock(&mutex_);
  ++counters_.dropped_messages;
}

}  // namespace farkv
