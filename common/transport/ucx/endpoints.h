// The connections of one engine: listeners, endpoints, and which peer of the
// operation table each endpoint is. Engine thread only.
//
// Both sides use peer error mode. UCX's error callback only reports the peer to
// the table; the endpoint is closed by force when the loop comes to it, and the
// table is told when that is final. An endpoint UCX offers for a reply is never
// closed here unless it is one of ours.
#ifndef FARKV_COMMON_TRANSPORT_UCX_ENDPOINTS_H_
#define FARKV_COMMON_TRANSPORT_UCX_ENDPOINTS_H_

#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/transport/operation_table.h"
#include "common/transport/ucx/engine_thread.h"
#include "common/transport/ucx/socket_address.h"

namespace farkv {

class Endpoints {
 public:
  // All outlive the object. `clock`: of the limits on handshakes and closes.
  Endpoints(ucp_worker_h worker, OperationTable* table, const Clock& clock)
      : worker_(worker), table_(table), clock_(clock) {}
  // After the worker: its callbacks may come as long as it lives.
  ~Endpoints() = default;
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  // Before the worker goes. Everything else must be closed (Close,
  // PollClosing) or have been given up.
  void DestroyListeners() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);

  // The port bound.
  absl::StatusOr<uint16_t> Listen(const SocketAddress& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  absl::StatusOr<PeerId> Connect(const SocketAddress& address,
                                 const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Takes the connections that asked since the last call; whether any did.
  bool AcceptPending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Closes by force. A connection of ours that is still being made is given
  // kHandshakeLimit first: UCX 1.13 aborts the process that we connect to when
  // we vanish in the middle of its handshake.
  void Close(PeerId peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Goes on with what is being closed; whether anything became final.
  bool PollClosing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  bool closing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    return !closing_.empty();
  }

  // Null when the peer has no open endpoint.
  ucp_ep_h Find(PeerId peer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Null when the endpoint is none of ours.
  const PeerId* FindPeer(ucp_ep_h endpoint) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  bool empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread) {
    return by_peer_.empty() && closing_.empty();
  }

 private:
  // What UCX's callbacks are given; lives until the close is final and none
  // is owed.
  struct Connection {
    Endpoints* owner = nullptr;
    PeerId peer;
    ucp_ep_h endpoint = nullptr;
    bool settled = true;  // made or failed: not in the middle of a handshake
    bool close_begun = false;
    absl::Time close_by;
    void* close_request = nullptr;
  };

  static void OnConnectionRequest(ucp_conn_request_h request, void* arg);
  static void OnError(void* arg, ucp_ep_h endpoint, ucs_status_t status);
  static void OnSettled(void* request, ucs_status_t status, void* user_data);
  void AwaitHandshake(Connection* connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Whether the close is final.
  bool PollClose(Connection* connection) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);

  // `params` says whom to connect to or which request to accept.
  absl::Status Open(PeerId peer, ucp_ep_params_t params)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  void Accept(ucp_conn_request_h request, ucp_listener_h listener)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);

  struct Listener {
    Endpoints* owner = nullptr;
    ucp_listener_h handle = nullptr;
  };
  struct Pending {
    ucp_conn_request_h request = nullptr;
    ucp_listener_h listener = nullptr;
  };

  const ucp_worker_h worker_;
  OperationTable* const table_;
  const Clock& clock_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Pending> pending_;  // emptied in each round of the loop
  std::map<PeerId, std::unique_ptr<Connection>> by_peer_;
  std::unordered_map<ucp_ep_h, PeerId> by_endpoint_;
  std::vector<std::unique_ptr<Connection>> closing_;
  // Closed, but UCX still owes the end of the handshake.
  std::vector<std::unique_ptr<Connection>> owed_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_ENDPOINTS_H_
