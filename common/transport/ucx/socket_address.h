// host and port as a socket address. Resolving a name may ask a name server
// and blocks, for how long nobody says: name_resolver.h bounds it. Thread-safe.
#ifndef FARKV_COMMON_TRANSPORT_UCX_SOCKET_ADDRESS_H_
#define FARKV_COMMON_TRANSPORT_UCX_SOCKET_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace farkv {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  uint16_t port() const;
  bool is_loopback() const;      // 127.0.0.0/8 or ::1
  std::string ToString() const;  // "127.0.0.1:4000"
};

// The address that `host` spells, as "127.0.0.1" or "::1"; none for a name.
// Never blocks.
std::optional<SocketAddress> ParseNumericAddress(const std::string& host,
                                                 uint16_t port);
// INVALID_ARGUMENT naming the host when it cannot be resolved, UNAVAILABLE when
// that may be different later.
absl::StatusOr<SocketAddress> ResolveAddress(const std::string& host,
                                             uint16_t port);

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_SOCKET_ADDRESS_H_
