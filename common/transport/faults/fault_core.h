// The state of a fault decorator: what was submitted through it, what is held
// back, and the schedule. Callbacks of the transport inside share it, because
// they may run when the decorator is gone. Thread-safe.
#ifndef FARKV_COMMON_TRANSPORT_FAULTS_FAULT_CORE_H_
#define FARKV_COMMON_TRANSPORT_FAULTS_FAULT_CORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/async/deadline_queue.h"
#include "common/async/gate.h"
#include "common/transport/faults/fault_schedule.h"
#include "common/transport/faults/fault_transport.h"

namespace farkv {

class FaultCore : public std::enable_shared_from_this<FaultCore> {
 public:
  FaultCore(const FaultSpec& spec, TransportOptions options)
      : spec_(spec), options_(std::move(options)) {}

  TransportOptions InnerOptions();
  absl::StatusOr<OperationId> Submit(Transport& inner, PeerId peer,
                                     Request request, ReplyCallback callback);
  void Cancel(Transport& inner, OperationId id);
  // Ends the held operations of `peer`, of every peer when null.
  void EndHeld(const PeerId* peer, const absl::Status& why);
  // Holds nothing back any more; TimerMain returns.
  void Close();
  // No handler starts any more; waits for those that run.
  void StopHandlers(absl::Duration timeout) {
    handlers_.Close();
    handlers_.WaitUntilEmpty(timeout);
  }
  // Releases what is due, until Close; on a thread of its own.
  void TimerMain();
  FaultCounters injected() const;
  TransportCounters Adjust(TransportCounters counters) const;

 private:
  // Something that arrived and waits: a request, or the reply of an operation
  // (none when it was dropped: the operation's deadline is waited for).
  struct Held {
    std::optional<Incoming> request;
    uint64_t operation = 0;
    std::optional<Message> reply;
    bool until_next = false;
  };
  struct Operation {
    PeerId peer;
    OperationId inner;
    absl::Time deadline;
    ReplyCallback callback;
    bool held = false;  // the transport inside is done with it
  };

  void OnReply(uint64_t id, absl::StatusOr<Message> reply);
  void OnRequest(Incoming incoming);
  void Deliver(Incoming incoming);
  void OnPeerLost(PeerId peer, const absl::Status& why);
  void Finish(uint64_t id, absl::StatusOr<Message> result);
  void FinishLater(uint64_t id, absl::Status status);
  std::vector<uint64_t> HeldOperations(const PeerId* peer);
  void Release(Held held);
  void ReleaseOvertaken();
  // What happens to a message; damages it; nullopt: at once.
  std::optional<absl::Time> Judge(Message& message, Fate* fate);
  void Hold(absl::Time until, Held held);

  const FaultSpec spec_;
  TransportOptions options_;
  Gate handlers_;

  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t submits_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_key_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::Time stalled_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Bounded by max_operations, and by the windows of the transport inside.
  std::map<uint64_t, Operation> operations_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Held> held_ ABSL_GUARDED_BY(mutex_);
  DeadlineQueue timers_ ABSL_GUARDED_BY(mutex_);
  FaultCounters injected_ ABSL_GUARDED_BY(mutex_);
  uint64_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t completed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;  // handed to the owner
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_FAULTS_FAULT_CORE_H_
