// The half of a transport that is the same in each implementation: which peers
// there are, which operations are open, their credits and deadlines, and who is
// owed what. A driver (the UCX progress engine, the loopback network) moves the
// bytes: it takes what is queued, reports when a send is final and hands in
// what arrived. STYLE: "State of an operation".
//
// An operation lives in a slot of a fixed slab. It is queued, posted and, when
// its caller was answered first (deadline, cancel, lost peer), draining until
// the driver says that its send is final; only then do lent bytes go back and
// is the slot used again, under a new generation. {slot, generation} is the
// operation id and the request id on the wire, so a late reply finds nothing.
//
// Thread-safe. Callbacks, lease releases and the wake function run without the
// lock. Held by shared_ptr because received bodies outlive the transport.
#ifndef FARKV_COMMON_TRANSPORT_OPERATION_TABLE_H_
#define FARKV_COMMON_TRANSPORT_OPERATION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/async/credit.h"
#include "common/async/deadline_queue.h"
#include "common/async/gate.h"
#include "common/transport/transport.h"

namespace farkv {

class OperationTable : public std::enable_shared_from_this<OperationTable> {
 public:
  // Slots beyond max_operations that only replies without a body may use: a
  // refusal goes out when everything else has to wait.
  static constexpr int kRefusalSlots = 16;
  // Of one peer above its share (fair_operations): the same for it alone.
  static constexpr int kRefusalsBeyondShare = 2;
  // Of an operation's or a peer's id: its slot; the rest is the generation.
  static constexpr uint64_t kIndexMask = 0xffffffffu;

  // A message for the wire. Pointers are good until SendFinal(slot).
  struct Outgoing {
    uint32_t slot = 0;
    PeerId peer;
    const EncodedHeader* header = nullptr;
    std::span<const BufferLease> body;
  };

  // `wake` tells the driver that there is something to take; any thread.
  static std::shared_ptr<OperationTable> Create(TransportOptions options,
                                                std::function<void()> wake);
  OperationTable(TransportOptions options, std::function<void()> wake);

  // ---- For the transport's callers; see transport.h.
  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback);
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body);
  void Cancel(OperationId operation);
  TransportCounters counters() const;

  // ---- Shutdown, in this order.
  // Refuses new operations and cancels the queued requests.
  void BeginShutdown();
  // Waits (real time) until no operation is open; false after `grace`.
  bool WaitIdle(absl::Duration grace);
  // No handler starts any more; waits for those that run.
  bool StopHandlers(absl::Duration timeout);

  // ---- Peers.
  // RESOURCE_EXHAUSTED at max_peers. `name` is for messages.
  absl::StatusOr<PeerId> AddPeer(std::string name);
  // The peer has connected to a listener: on_peer_connected runs.
  void Announce(PeerId peer);
  // OK while the peer takes operations; NOT_FOUND when it is stale.
  absl::Status CheckOpen(PeerId peer);
  // Completes the peer's operations with `why` and lists it in TakeClosing.
  // `report`: on_peer_lost runs after them. Only the first call counts.
  void FailPeer(PeerId peer, absl::Status why, bool report);
  void FailAllPeers(const absl::Status& why);

  // ---- For the driver, on one thread.
  // Moves what is queued to posted.
  std::vector<Outgoing> TakeQueued();
  // Peers whose connection the driver is to close by force.
  std::vector<PeerId> TakeClosing();
  bool HasWork() const;
  // The send of `slot` can touch its bytes no more. An error also ends the
  // operation when its caller is still waiting.
  void SendFinal(uint32_t slot, const absl::Status& status);
  // The connection of a failed peer is closed and all its sends are final.
  void RemovePeer(PeerId peer);
  // Ends what has run out of time. A reply that cannot be delivered in time
  // fails its peer: nothing else would ever free its bytes.
  void Expire();
  absl::Time NextDeadline() const;

  // Whether a message whose header has arrived is wanted. After true, exactly
  // one of Deliver, AbandonReceive and RefuseReceive follows. False was counted
  // as dropped; a request beyond the peer's window was refused by a reply.
  bool Admit(PeerId from, const MessageHeader& header);
  void Deliver(PeerId from, Message message);
  void AbandonReceive(PeerId from, const MessageHeader& header);
  // There is no memory for the body: whoever waits for it, here or there, is
  // told RESOURCE_EXHAUSTED instead of running into its deadline.
  void RefuseReceive(PeerId from, const MessageHeader& header);
  void CountDropped();

 private:
  enum class State : uint8_t { kFree, kReserved, kQueued, kPosted };
  struct Slot {
    State state = State::kFree;
    bool is_reply = false;
    bool completed = false;       // the caller's result is decided
    bool delivered = false;       // and its callback has begun
    bool send_final = false;      // the lent bytes are safe
    bool reply_arriving = false;  // admitted, body not complete
    uint32_t generation = 1;
    PeerId peer;
    MessageHeader request;  // what a reply must fit
    size_t bytes = 0;
    absl::Time deadline;
    ReplyCallback callback;
  };
  // Owned by the submitter while its slot is reserved, by the driver while it
  // is posted, by the table otherwise.
  struct Payload {
    EncodedHeader header{};
    std::vector<BufferLease> body;
  };
  struct Peer {
    Peer(std::string peer_name, const TransportOptions& options);
    uint32_t generation = 0;
    bool used = true;
    bool lost = false;
    bool report = false;  // on_peer_lost is owed
    bool closed = false;  // the driver is done with it
    int slots = 0;
    int tasks = 0;  // callbacks and handlers queued or running
    std::string name;
    absl::Status why;
    CreditWindow requests, replies, incoming;
  };
  // What must happen once the lock is no longer held.
  struct Effects {
    std::vector<BufferLease> released;
    std::vector<absl::AnyInvocable<void() &&>> tasks;
    bool wake = false;
  };

  absl::Status QueueReply(PeerId peer, const MessageHeader& header,
                          std::vector<BufferLease> body);
  void Refuse(PeerId from, const MessageHeader& request, absl::StatusCode code);
  absl::Status CheckSize(std::span<const BufferLease> body) const;
  absl::StatusOr<uint32_t> Reserve(PeerId peer, bool is_reply, size_t bytes);
  absl::Status CheckShare(const Peer& peer, int beyond) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<OperationId> Enqueue(uint32_t slot, absl::Time deadline,
                                      ReplyCallback callback);
  void Run(Effects effects) ABSL_LOCKS_EXCLUDED(mutex_);
  void CallbackStarted(uint32_t slot);
  void TaskDone(PeerId peer);
  // Counts a request whose turn has come; false when its peer has gone.
  bool BeginRequest(PeerId from);
  void ReleaseIncoming(PeerId peer, size_t bytes);
  void DeliverRequest(PeerId from, Message message);
  void DeliverReply(PeerId from, Message message);

  Peer* FindPeer(PeerId peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPeer(PeerId peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Slot* FindReplied(PeerId from, const MessageHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  OperationId IdOf(uint32_t slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Slot* FindOperation(OperationId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complete(uint32_t slot, absl::StatusOr<Message> result, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MaybeFree(uint32_t slot, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(uint32_t slot, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(PeerId peer, const absl::Status& why, bool report, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MaybeRetire(PeerId peer, Effects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t IndexOf(const Slot* slot) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TransportOptions options_;
  const std::function<void()> wake_;
  Gate handlers_;
  std::vector<Payload> payloads_;  // by slot, see Payload

  mutable absl::Mutex mutex_;
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;  // result or send still owed
  int peers_with_slots_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> queued_ ABSL_GUARDED_BY(mutex_);
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<PeerId> closing_ ABSL_GUARDED_BY(mutex_);
  DeadlineQueue deadlines_ ABSL_GUARDED_BY(mutex_);
  TransportCounters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_OPERATION_TABLE_H_
