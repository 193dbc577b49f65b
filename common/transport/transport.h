// Moves messages between peers, with bounds, deadlines and exactly one
// completion for each operation. DESIGN 8; STYLE 4 "Wrapping UCX".
//
// Goals: two-sided active messages only, no remote addresses; bounded queues
// (Submit refuses, never blocks); every operation ends by reply, error,
// deadline or cancel; a buffer lent to an operation comes back only when no
// NIC and no peer can still touch it. Non-goals: ordering between operations,
// retries (the caller's business), encryption.
//
// Implementations: UCX (ucx/ucx_transport.h), in-process loopback
// (loopback_transport.h), and a seeded fault decorator over either
// (fault_transport.h, test builds only).
//
// Thread-safety: all methods may be called from any thread. Handlers and
// completions run on the executor given in the options, no lock held.
#ifndef FARKV_COMMON_TRANSPORT_TRANSPORT_H_
#define FARKV_COMMON_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/async/executor.h"
#include "common/base/clock.h"
#include "common/transport/message.h"

namespace farkv {

// Bytes lent to an operation by move. `release` runs once, when the operation
// no longer needs them, on an unspecified thread with no lock held.
class BufferLease {
 public:
  BufferLease() = default;
  BufferLease(std::span<std::byte> bytes,
              absl::AnyInvocable<void() &&> release);
  // Owns a copy-free vector.
  static BufferLease Owning(std::vector<std::byte> bytes);
  // Memory that is not zeroed. RESOURCE_EXHAUSTED naming `bytes` when there is
  // none: what a peer asks for must not end the process.
  static absl::StatusOr<BufferLease> Allocate(size_t bytes);
  // The source is left empty.
  BufferLease(BufferLease&& other) noexcept;
  BufferLease& operator=(BufferLease&& other) noexcept;
  ~BufferLease();

  std::span<std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<std::byte> bytes_;
  absl::AnyInvocable<void() &&> release_;
};

// A message as it arrived. `body` is owned by the message. The CRC has not
// been checked: call CheckMessage(header_bytes, body) on your own thread.
struct Message {
  MessageHeader header;
  EncodedHeader header_bytes{};
  BufferLease body;
};

// A connected peer, generation-checked: a stale id is simply not found.
struct PeerId {
  uint64_t value = 0;
  friend auto operator<=>(const PeerId&, const PeerId&) = default;
};

struct OperationId {
  uint64_t value = 0;
  friend auto operator<=>(const OperationId&, const OperationId&) = default;
};

// Bounds of every implementation; beyond them INVALID_ARGUMENT.
inline constexpr size_t kMaxBodyBytes = size_t{64} << 20;
inline constexpr size_t kMaxBodyPieces = 8;

// A request: header, body in a few pieces in order, a deadline. The
// transport fills request_id and the CRC.
struct Request {
  MessageHeader header;
  std::vector<BufferLease> body;
  absl::Duration timeout;  // must be positive and finite
};

// OK with the reply, or DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE (peer lost,
// draining), RESOURCE_EXHAUSTED. A reply whose header carries a non-OK code
// arrives as that error, its message naming the peer, or as DATA_LOSS when its
// CRC is wrong. Runs exactly once.
using ReplyCallback =
    absl::AnyInvocable<void(absl::StatusOr<Message> reply) &&>;

struct Incoming {
  PeerId peer;
  Message message;  // a request, IsReply() is false
  // When it was complete, on the transport's clock: it may have waited for the
  // executor since.
  absl::Time arrived = absl::InfiniteFuture();
};
// Called for each request that arrives and whose peer is still there when its
// turn comes. The reply goes out by Reply().
using RequestHandler = absl::AnyInvocable<void(Incoming incoming)>;
// Called once for each peer that has connected to a listener, whether or not
// it ever says anything; perhaps beside its first request.
using PeerConnectedHandler = absl::AnyInvocable<void(PeerId peer)>;
// Called once when a peer is lost or closed by it, after every operation on it
// has completed.
using PeerLostHandler = absl::AnyInvocable<void(PeerId peer, absl::Status why)>;

struct TransportOptions {
  Executor* executor = nullptr;  // borrowed, outlives the transport
  const Clock* clock = &Clock::Boottime();
  RequestHandler on_request;               // may be empty: requests are refused
  PeerConnectedHandler on_peer_connected;  // may be empty
  PeerLostHandler on_peer_lost;            // may be empty
  int max_operations = 1024;               // slots: queued, posted and draining
  // Of them, those that replies take as they come; above it a reply gets a slot
  // only while its peer has less than an even share (this over the peers that
  // have any). One that does not read uses up its own share. 0: all of them.
  int fair_operations = 0;
  int max_operations_per_peer = 256;
  size_t max_bytes_in_flight_per_peer = size_t{256} << 20;
  int max_peers = 1024;
  // A reply that its peer does not take within this time fails the peer.
  absl::Duration reply_timeout = absl::Seconds(30);
  // Longest an idle engine spins before it sleeps on the event descriptor.
  absl::Duration spin = absl::Microseconds(50);
};

struct TransportCapabilities {
  std::string name;  // "tcp", "rdma", "loopback": as shown to operators
  bool rdma = false;
  size_t max_body_bytes = 0;
};

// Snapshot for metrics and for the invariant that everything submitted
// completed exactly once.
struct TransportCounters {
  uint64_t submitted = 0;
  uint64_t completed = 0;          // callbacks begun
  uint64_t requests_received = 0;  // calls of the request handler
  // Operations and replies whose result or lent bytes are still owed.
  uint64_t open_operations = 0;
  // Memory of bodies that are being received or that nobody has released yet.
  // 0 where bodies are not received into buffers of the transport (loopback).
  uint64_t receive_buffer_bytes = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t dropped_messages = 0;  // malformed, late or unknown
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Accepts peers at host:port (port 0: any) and returns the port bound.
  // ALREADY_EXISTS naming the port when it is taken.
  virtual absl::StatusOr<uint16_t> Listen(const std::string& host,
                                          uint16_t port) = 0;
  // Starts a connection; operations may be submitted at once and fail with
  // UNAVAILABLE when it cannot be made.
  virtual absl::StatusOr<PeerId> Connect(const std::string& host,
                                         uint16_t port) = 0;
  // Queues a request. RESOURCE_EXHAUSTED when slots, credits or bytes are used
  // up, NOT_FOUND for a stale peer; then `callback` is not called and the
  // leases in `request` are released.
  virtual absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                             ReplyCallback callback) = 0;
  // Queues the reply to a request; header.request_id must be the request's.
  // Fire and forget: the body is released when the transport is done with it.
  // RESOURCE_EXHAUSTED when slots or the peer's bytes are used up: the
  // requester is then told so instead, if that is possible.
  virtual absl::Status Reply(PeerId peer, MessageHeader header,
                             std::vector<BufferLease> body) = 0;
  // Frees the caller: the callback runs with CANCELLED unless the operation is
  // already final. Lent bytes stay lent until they are safe.
  virtual void Cancel(OperationId operation) = 0;
  // Closes a peer by force; its operations complete with UNAVAILABLE.
  virtual void ClosePeer(PeerId peer) = 0;
  // Refuses new work, cancels what is queued, waits for posted work up to
  // `grace`, closes everything. Idempotent; also run by the destructor.
  virtual void Shutdown(absl::Duration grace) = 0;

  virtual TransportCapabilities capabilities() const = 0;
  virtual TransportCounters counters() const = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_TRANSPORT_H_
