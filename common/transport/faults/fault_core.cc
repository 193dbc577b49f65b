#include "common/transport/faults/fault_core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

// How long an overtaken message waits for the one that overtakes it.
constexpr absl::Duration kReorderLimit = absl::Milliseconds(10);

}  // namespace

TransportOptions FaultCore::InnerOptions() {
  TransportOptions inner;
  inner.executor = options_.executor;
  inner.clock = options_.clock;
  inner.max_operations = options_.max_operations;
  inner.fair_operations = options_.fair_operations;
  inner.max_operations_per_peer = options_.max_operations_per_peer;
  inner.max_bytes_in_flight_per_peer = options_.max_bytes_in_flight_per_peer;
  inner.max_peers = options_.max_peers;
  inner.reply_timeout = options_.reply_timeout;
  inner.spin = options_.spin;
  if (options_.on_request) {
    inner.on_request = [self = shared_from_this()](Incoming incoming) {
      self->OnRequest(std::move(incoming));
    };
  }
  if (options_.on_peer_connected) {
    inner.on_peer_connected = [self = shared_from_this()](PeerId peer) {
      const Gate::Pass pass = self->handlers_.TryEnter();
      if (pass) self->options_.on_peer_connected(peer);
    };
  }
  inner.on_peer_lost = [self = shared_from_this()](PeerId peer,
                                                   absl::Status why) {
    self->OnPeerLost(peer, why);
  };
  return inner;
}

absl::StatusOr<OperationId> FaultCore::Submit(Transport& inner, PeerId peer,
                                              Request request,
                                              ReplyCallback callback) {
  uint64_t id = 0;
  bool fail = false;
  {
    absl::MutexLock lock(&mutex_);
    if (operations_.size() >= static_cast<size_t>(options_.max_operations)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "all ", options_.max_operations, " operations are used"));
    }
    id = next_key_++;
    Operation& operation = operations_[id];
    operation.peer = peer;
    operation.deadline = options_.clock->Now() + request.timeout;
    operation.callback = std::move(callback);
    ++submits_;
    if (spec_.fail_nth != 0 && submits_ % spec_.fail_nth == 0) {
      ++injected_.failed;
      ++submitted_;
      operation.held = true;
    }
    fail = operation.held;
  }
  if (fail) {
    FinishLater(id, absl::UnavailableError("fault: operation failed"));
    return OperationId{id};
  }
  const absl::StatusOr<OperationId> submitted = inner.Submit(
      peer, std::move(request), [self = shared_from_this(), id](auto reply) {
        self->OnReply(id, std::move(reply));
      });
  ReplyCallback dropped;
  absl::MutexLock lock(&mutex_);
  const auto found = operations_.find(id);
  if (!submitted.ok()) {
    dropped = std::move(found->second.callback);
    operations_.erase(found);
    return submitted.status();
  }
  ++submitted_;
  if (found != operations_.end()) found->second.inner = *submitted;
  return OperationId{id};
}

void FaultCore::Cancel(Transport& inner, OperationId id) {
  OperationId inner_id;
  bool held = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = operations_.find(id.value);
    if (found == operations_.end()) return;
    held = found->second.held;
    inner_id = found->second.inner;
  }
  if (!held) {
    inner.Cancel(inner_id);
    // Its reply may have come into our hands before that.
    absl::MutexLock lock(&mutex_);
    const auto found = operations_.find(id.value);
    held = found != operations_.end() && found->second.held;
  }
  if (held) FinishLater(id.value, absl::CancelledError("operation cancelled"));
}

void FaultCore::OnReply(uint64_t id, absl::StatusOr<Message> reply) {
  if (!reply.ok()) return Finish(id, std::move(reply));
  Fate fate;
  const std::optional<absl::Time> until = Judge(*reply, &fate);
  if (!until.has_value()) {
    Finish(id, std::move(reply));
    return ReleaseOvertaken();
  }
  Held held;
  held.operation = id;
  held.until_next = fate.reorder;
  absl::Time release = *until;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = operations_.find(id);
    if (found == operations_.end()) return;
    found->second.held = true;
    release = std::min(release, found->second.deadline);
  }
  if (!fate.drop) held.reply = *std::move(reply);
  Hold(release, std::move(held));
}

void FaultCore::OnRequest(Incoming incoming) {
  Fate fate;
  const std::optional<absl::Time> until = Judge(incoming.message, &fate);
  if (fate.drop) return;
  if (fate.duplicate) {
    Deliver({incoming.peer, CopyOf(incoming.message), incoming.arrived});
  }
  if (!until.has_value()) {
    Deliver(std::move(incoming));
    return ReleaseOvertaken();
  }
  Held held;
  held.request = std::move(incoming);
  held.until_next = fate.reorder;
  Hold(*until, std::move(held));
}

std::optional<absl::Time> FaultCore::Judge(Message& message, Fate* fate) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return std::nullopt;
  *fate = FateOf(spec_, arrivals_++);
  const absl::Time now = options_.clock->Now();
  if (fate->stall) {
    ++injected_.stalled;
    stalled_until_ = std::max(stalled_until_, now + spec_.stall_for);
  }
  if (fate->drop) {
    ++injected_.dropped;
    return absl::InfiniteFuture();
  }
  if (fate->truncate && TruncateBody(message, fate->where)) {
    ++injected_.truncated;
  }
  if (fate->flip) {
    FlipBit(message, fate->where);
    ++injected_.flipped;
  }
  fate->duplicate = fate->duplicate && !IsReply(message.header.type);
  if (fate->duplicate) ++injected_.duplicated;
  absl::Time until = stalled_until_;
  if (fate->reorder) {
    ++injected_.reordered;
    until = std::max(until, now + kReorderLimit);
  }
  if (fate->delay) {
    ++injected_.delayed;
    until = std::max(until, now + spec_.delay_for);
  }
  if (until <= now) return std::nullopt;
  return until;
}

void FaultCore::Hold(absl::Time until, Held held) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      const uint64_t key = next_key_++;
      held_.emplace(key, std::move(held));
      timers_.Add(until, key);
      changed_ = true;
      return;
    }
  }
  Release(std::move(held));
}

void FaultCore::Deliver(Incoming incoming) {
  const Gate::Pass pass = handlers_.TryEnter();
  if (!pass) return;
  {
    absl::MutexLock lock(&mutex_);
    ++requests_;
  }
  options_.on_request(std::move(incoming));
}

void FaultCore::Finish(uint64_t id, absl::StatusOr<Message> result) {
  ReplyCallback callback;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = operations_.find(id);
    if (found == operations_.end()) return;  // ended otherwise
    callback = std::move(found->second.callback);
    operations_.erase(found);
    ++completed_;
  }
  std::move(callback)(std::move(result));
}

void FaultCore::Release(Held held) {
  options_.executor->Execute(
      [self = shared_from_this(), held = std::move(held)]() mutable {
        if (held.request.has_value()) {
          self->Deliver(*std::move(held.request));
        } else if (held.reply.has_value()) {
          self->Finish(held.operation, *std::move(held.reply));
        } else {
          self->Finish(held.operation,
                       absl::DeadlineExceededError("fault: reply dropped"));
        }
      });
}

void FaultCore::ReleaseOvertaken() {
  std::vector<Held> overtaken;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = held_.begin(); it != held_.end();) {
      if (!it->second.until_next) {
        ++it;
        continue;
      }
      overtaken.push_back(std::move(it->second));
      it = held_.erase(it);  // its timer finds nothing
    }
  }
  for (Held& held : overtaken) Release(std::move(held));
}

std::vector<uint64_t> FaultCore::HeldOperations(const PeerId* peer) {
  std::vector<uint64_t> ids;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, operation] : operations_) {
    const bool concerned = peer == nullptr || operation.peer == *peer;
    if (operation.held && concerned) ids.push_back(id);
  }
  return ids;
}

void FaultCore::EndHeld(const PeerId* peer, const absl::Status& why) {
  for (uint64_t id : HeldOperations(peer)) FinishLater(id, why);
}

// On the executor already: the operations end before the owner hears of it.
void FaultCore::OnPeerLost(PeerId peer, const absl::Status& why) {
  for (uint64_t id : HeldOperations(&peer)) {
    Finish(id, absl::UnavailableError(why.message()));
  }
  const Gate::Pass pass = handlers_.TryEnter();
  if (pass && options_.on_peer_lost) options_.on_peer_lost(peer, why);
}

void FaultCore::FinishLater(uint64_t id, absl::Status status) {
  options_.executor->Execute(
      [self = shared_from_this(), id, status = std::move(status)] {
        self->Finish(id, status);
      });
}

void FaultCore::Close() {
  std::map<uint64_t, Held> dropped;
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  dropped.swap(held_);
}

void FaultCore::TimerMain() {
  for (;;) {
    std::vector<Held> due;
    {
      absl::MutexLock lock(&mutex_);
      auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return changed_ || closed_;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&woken),
                              timers_.next() - options_.clock->Now());
      if (closed_) return;
      changed_ = false;
      for (uint64_t key : timers_.TakeExpired(options_.clock->Now())) {
        const auto found = held_.find(key);
        if (found == held_.end()) continue;
        due.push_back(std::move(found->second));
        held_.erase(found);
      }
    }
    for (Held& held : due) Release(std::move(held));
  }
}

FaultCounters FaultCore::injected() const {
  absl::MutexLock lock(&mutex_);
  return injected_;
}

TransportCounters FaultCore::Adjust(TransportCounters counters) const {
  absl::MutexLock lock(&mutex_);
  counters.submitted = submitted_;
  counters.completed = completed_;
  counters.requests_received = requests_;
  counters.open_operations += held_.size();
  counters.dropped_messages += injected_.dropped;
  return counters;
}

}  // namespace farkv
