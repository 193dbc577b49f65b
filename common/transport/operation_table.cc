#include "common/transport/operation_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

size_t SizeOf(std::span<const BufferLease> body) {
  size_t bytes = 0;
  for (const BufferLease& piece : body) bytes += piece.size();
  return bytes;
}

EncodedHeader Encode(const MessageHeader& header,
                     std::span<const BufferLease> body) {
  std::vector<std::span<const std::byte>> pieces;
  for (const BufferLease& piece : body) pieces.push_back(piece.bytes());
  return EncodeHeader(header, pieces);
}

}  // namespace

std::shared_ptr<OperationTable> OperationTable::Create(
    TransportOptions options, std::function<void()> wake) {
  return std::make_shared<OperationTable>(std::move(options), std::move(wake));
}

OperationTable::OperationTable(TransportOptions options,
                               std::function<void()> wake)
    : options_(std::move(options)),
      wake_(std::move(wake)),
      payloads_(static_cast<size_t>(options_.max_operations + kRefusalSlots)),
      slots_(payloads_.size()) {
  for (size_t i = slots_.size(); i > 0; --i) {
    free_slots_.push_back(static_cast<uint32_t>(i - 1));
  }
}

absl::StatusOr<OperationId> OperationTable::Submit(PeerId peer, Request request,
                                                   ReplyCallback callback) {
  if (IsReply(request.header.type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "message type ", request.header.type, " is not a request"));
  }
  if (request.timeout <= absl::ZeroDuration() ||
      request.timeout == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("request timeout must be positive and finite, is ",
                     absl::FormatDuration(request.timeout)));
  }
  FARKV_RETURN_IF_ERROR(CheckSize(request.body));
  const absl::Time deadline = options_.clock->Now() + request.timeout;
  FARKV_ASSIGN_OR_RETURN(const uint32_t slot,
                         Reserve(peer, false, SizeOf(request.body)));
  {
    absl::MutexLock lock(&mutex_);
    request.header.request_id = IdOf(slot).value;
    slots_[slot].request = request.header;
  }
  // The checksum reads the whole body: on the submitter's thread, no lock held.
  payloads_[slot].header = Encode(request.header, request.body);
  payloads_[slot].body = std::move(request.body);
  return Enqueue(slot, deadline, std::move(callback));
}

absl::Status OperationTable::Reply(PeerId peer, MessageHeader header,
                                   std::vector<BufferLease> body) {
  if (!IsReply(header.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("message type ", header.type, " is not a reply"));
  }
  FARKV_RETURN_IF_ERROR(CheckSize(body));
  const absl::Status status = QueueReply(peer, header, std::move(body));
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    header.code = status.code();
    QueueReply(peer, header, {}).IgnoreError();
  }
  return status;
}

absl::Status OperationTable::QueueReply(PeerId peer,
                                        const MessageHeader& header,
                                        std::vector<BufferLease> body) {
  const absl::Time deadline = options_.clock->Now() + options_.reply_timeout;
  FARKV_ASSIGN_OR_RETURN(const uint32_t slot,
                         Reserve(peer, true, SizeOf(body)));
  payloads_[slot].header = Encode(header, body);
  payloads_[slot].body = std::move(body);
  return Enqueue(slot, deadline, nullptr).status();
}

absl::Status OperationTable::CheckSize(
    std::span<const BufferLease> body) const {
  if (body.size() > kMaxBodyPieces) {
    return absl::InvalidArgumentError(
        absl::StrCat("message body has ", body.size(), " pieces, at most ",
                     kMaxBodyPieces, " are allowed"));
  }
  if (const size_t bytes = SizeOf(body); bytes > kMaxBodyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("message body has ", bytes, " bytes, at most ",
                     kMaxBodyBytes, " are allowed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> OperationTable::Reserve(PeerId peer, bool is_reply,
                                                 size_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (shutdown_ && !is_reply) {
    return absl::UnavailableError("transport is shutting down");
  }
  FARKV_RETURN_IF_ERROR(CheckPeer(peer));
  const bool may_be_refusal = is_reply && bytes == 0;
  const size_t kept = may_be_refusal ? 0 : size_t{kRefusalSlots};
  if (free_slots_.size() <= kept) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", options_.max_operations,
                     " operation slots of the transport are used"));
  }
  Peer& entry = *FindPeer(peer);
  if (is_reply) {
    FARKV_RETURN_IF_ERROR(
        CheckShare(entry, may_be_refusal ? kRefusalsBeyondShare : 0));
  }
  FARKV_RETURN_IF_ERROR(
      (is_reply ? entry.replies : entry.requests).TryAcquire(bytes));
  const uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  if (entry.slots++ == 0) ++peers_with_slots_;
  ++open_;
  Slot& slot = slots_[index];
  slot.state = State::kReserved;
  slot.is_reply = is_reply;
  slot.completed = slot.delivered = is_reply;  // nobody waits for a reply
  slot.send_final = slot.reply_arriving = false;
  slot.peer = peer;
  slot.bytes = bytes;
  return index;
}

absl::Status OperationTable::CheckShare(const Peer& peer, int beyond) const {
  const auto used = static_cast<int>(slots_.size() - free_slots_.size());
  if (options_.fair_operations == 0 || used < options_.fair_operations) {
    return absl::OkStatus();
  }
  const int holders = peers_with_slots_ + (peer.slots == 0 ? 1 : 0);
  const int share = options_.fair_operations / holders + beyond;
  if (peer.slots == 0 || peer.slots < share) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("peer ", peer.name, " has ", peer.slots, " of ", used,
                   " operation slots; above ", options_.fair_operations,
                   " its share is ", share));
}

absl::StatusOr<OperationId> OperationTable::Enqueue(uint32_t slot,
                                                    absl::Time deadline,
                                                    ReplyCallback callback) {
  Effects effects;
  absl::StatusOr<OperationId> result;
  {
    absl::MutexLock lock(&mutex_);
    Slot& entry = slots_[slot];
    result = IdOf(slot);
    absl::Status admitted = CheckPeer(entry.peer);
    if (shutdown_ && !entry.is_reply) {
      admitted = absl::UnavailableError("transport is shutting down");
    }
    if (admitted.ok()) {
      entry.state = State::kQueued;
      entry.deadline = deadline;
      entry.callback = std::move(callback);
      deadlines_.Add(deadline, slot);
      queued_.push_back(slot);
      if (!entry.is_reply) ++counters_.submitted;
      effects.wake = true;
    } else {
      result = admitted;
      --open_;
      Free(slot, &effects);
    }
  }
  Run(std::move(effects));
  return result;
}

void OperationTable::Cancel(OperationId operation) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    Slot* slot = FindOperation(operation);
    if (slot == nullptr || slot->completed) return;
    Complete(IndexOf(slot), absl::CancelledError("operation cancelled"),
             &effects);
  }
  Run(std::move(effects));
}

TransportCounters OperationTable::counters() const {
  absl::MutexLock lock(&mutex_);
  TransportCounters counters = counters_;
  counters.open_operations = slots_.size() - free_slots_.size();
  return counters;
}

void OperationTable::BeginShutdown() {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    shutdown_ = true;
    for (uint32_t slot : queued_) {
      if (slots_[slot].completed) continue;
      Complete(slot, absl::CancelledError("transport is shutting down"),
               &effects);
    }
    effects.wake = true;
  }
  Run(std::move(effects));
}

bool OperationTable::WaitIdle(absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]()
                  ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ == 0; };
  return mutex_.AwaitWithTimeout(absl::Condition(&idle), grace);
}

std::vector<OperationTable::Outgoing> OperationTable::TakeQueued() {
  std::vector<Outgoing> outgoing;
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    for (uint32_t slot : queued_) {
      Slot& entry = slots_[slot];
      const bool wanted = entry.is_reply || !entry.completed;
      if (wanted && CheckPeer(entry.peer).ok()) {
        entry.state = State::kPosted;
        outgoing.push_back(
            {slot, entry.peer, &payloads_[slot].header, payloads_[slot].body});
      } else {
        entry.send_final = true;  // it never touched the wire
        if (entry.completed) --open_;
        MaybeFree(slot, &effects);
      }
    }
    queued_.clear();
  }
  Run(std::move(effects));
  return outgoing;
}

bool OperationTable::HasWork() const {
  absl::MutexLock lock(&mutex_);
  return !queued_.empty() || !closing_.empty();
}

void OperationTable::SendFinal(uint32_t slot, const absl::Status& status) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    Slot& entry = slots_[slot];
    effects.released = std::exchange(payloads_[slot].body, {});
    entry.send_final = true;
    if (status.ok()) counters_.bytes_sent += kMessageHeaderBytes + entry.bytes;
    if (entry.completed) {
      --open_;
    } else if (!status.ok()) {
      Complete(slot, status, &effects);
    }
    MaybeFree(slot, &effects);
  }
  Run(std::move(effects));
}

void OperationTable::Expire() {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    for (uint64_t key : deadlines_.TakeExpired(options_.clock->Now())) {
      const auto slot = static_cast<uint32_t>(key);
      if (slots_[slot].is_reply) {
        Fail(slots_[slot].peer,
             absl::DeadlineExceededError(
                 absl::StrCat("a reply could not be delivered within ",
                              absl::FormatDuration(options_.reply_timeout))),
             true, &effects);
      } else if (!slots_[slot].completed) {
        Complete(slot,
                 absl::DeadlineExceededError(absl::StrCat(
                     "no reply from peer ", FindPeer(slots_[slot].peer)->name,
                     " before the deadline")),
                 &effects);
      }
    }
  }
  Run(std::move(effects));
}

absl::Time OperationTable::NextDeadline() const {
  absl::MutexLock lock(&mutex_);
  return deadlines_.next();
}

void OperationTable::Complete(uint32_t slot, absl::StatusOr<Message> result,
                              Effects* effects) {
  Slot& entry = slots_[slot];
  entry.completed = true;
  deadlines_.Remove(entry.deadline, slot);
  if (entry.send_final) --open_;
  if (entry.state == State::kQueued) {
    for (BufferLease& lease : payloads_[slot].body) {
      effects->released.push_back(std::move(lease));
    }
    payloads_[slot].body.clear();
  }
  ++FindPeer(entry.peer)->tasks;
  effects->tasks.push_back([self = shared_from_this(), slot, peer = entry.peer,
                            callback = std::exchange(entry.callback, nullptr),
                            result = std::move(result)]() mutable {
    // The slot is free again before the callback, which may want to submit.
    self->CallbackStarted(slot);
    std::move(callback)(std::move(result));
    self->TaskDone(peer);
  });
}

void OperationTable::CallbackStarted(uint32_t slot) {
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    ++counters_.completed;
    slots_[slot].delivered = true;
    MaybeFree(slot, &effects);
  }
  Run(std::move(effects));
}

void OperationTable::MaybeFree(uint32_t slot, Effects* effects) {
  const Slot& entry = slots_[slot];
  if (entry.delivered && entry.send_final) Free(slot, effects);
}

void OperationTable::Free(uint32_t slot, Effects* effects) {
  Slot& entry = slots_[slot];
  deadlines_.Remove(entry.deadline, slot);
  for (BufferLease& lease : payloads_[slot].body) {
    effects->released.push_back(std::move(lease));
  }
  payloads_[slot].body.clear();
  Peer& peer = *FindPeer(entry.peer);
  (entry.is_reply ? peer.replies : peer.requests).Release(entry.bytes);
  if (--peer.slots == 0) --peers_with_slots_;
  entry.state = State::kFree;
  ++entry.generation;
  free_slots_.push_back(slot);
  MaybeRetire(entry.peer, effects);
}

void OperationTable::Run(Effects effects) {
  effects.released.clear();
  for (auto& task : effects.tasks) options_.executor->Execute(std::move(task));
  if (effects.wake) wake_();
}

OperationId OperationTable::IdOf(uint32_t slot) const {
  return OperationId{(uint64_t{slots_[slot].generation} << 32) | slot};
}

OperationTable::Slot* OperationTable::FindOperation(OperationId id) {
  const uint64_t index = id.value & kIndexMask;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  if (slot.state == State::kFree || slot.state == State::kReserved ||
      slot.is_reply || slot.generation != id.value >> 32) {
    return nullptr;
  }
  return &slot;
}

uint32_t OperationTable::IndexOf(const Slot* slot) const {
  return static_cast<uint32_t>(slot - slots_.data());
}

}  // namespace farkv
