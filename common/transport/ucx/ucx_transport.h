// Transport over UCX active messages: TCP anywhere, RDMA where there is a NIC
// (same code; not yet verified on hardware). DESIGN 8; STYLE 4 "Wrapping UCX".
//
// One engine per transport: one thread, one UCX worker, asleep when idle. The
// engine starts with the first Listen or Connect. Buffers lent to Submit and
// Reply come back when UCX says that the send is final, or when the connection
// is closed. Thread-safe as Transport says.
//
// UCX has no authentication, and its TCP protocol lets whoever reaches its
// ports write to this process's memory. Bind it to a network of trusted peers
// (net_devices, port_range, firewall).
#ifndef FARKV_COMMON_TRANSPORT_UCX_UCX_TRANSPORT_H_
#define FARKV_COMMON_TRANSPORT_UCX_UCX_TRANSPORT_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/transport/transport.h"
#include "common/transport/ucx/name_resolver.h"

namespace farkv {

struct UcxOptions {
  // Interfaces as UCX names them ("lo", "eth0", "mlx5_0:1"), or "all". Empty:
  // "lo" when the first Listen or Connect is to a loopback address, else all.
  // UCX opens a port on each of them.
  std::string net_devices;
  // "9000-9100": where UCX's own data ports lie; empty: anywhere. The port of
  // Listen is apart from it.
  std::string port_range;
  // UCX transports. Never shared memory: the map is the same-host path.
  std::string tls = "tcp,self";
  // UCX's defaults (8 KiB, 64 KiB) halve the bandwidth.
  size_t tcp_send_segment_bytes = size_t{256} << 10;
  size_t tcp_receive_segment_bytes = size_t{512} << 10;
  // From this size on a body waits for the receiver's buffer (rendezvous)
  // instead of being sent at once and copied there.
  size_t rendezvous_bytes = size_t{256} << 10;
  // Receive buffers kept for reuse, in bytes; memory that stays with the
  // process. 0 keeps none and costs page faults.
  size_t kept_buffer_bytes = size_t{64} << 20;
  // Bound on the bodies that all peers together have sent and nobody has
  // released yet; what arrives above it is refused and counted.
  size_t max_incoming_bytes = size_t{1} << 30;
  // Longest that Listen and Connect wait for the address of a host's name.
  absl::Duration resolve_timeout = absl::Seconds(5);
  // Who knows the addresses of names.
  NameResolver::Lookup lookup = ResolveAddress;
};

// INVALID_ARGUMENT when an option cannot be meant.
absl::StatusOr<std::unique_ptr<Transport>> CreateUcxTransport(
    TransportOptions options, UcxOptions ucx);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_UCX_TRANSPORT_H_
