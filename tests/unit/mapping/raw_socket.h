// A Unix socket spoken by hand, for peers that misbehave. Test only.
#ifndef FARKV_TESTS_UNIT_MAPPING_RAW_SOCKET_H_
#define FARKV_TESTS_UNIT_MAPPING_RAW_SOCKET_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "common/mapping/unique_fd.h"

namespace farkv::testing {

inline sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Receiving gives up after a minute, so that a wrong server cannot hang a
// test.
inline UniqueFd NewSeqpacket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval limit{60, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return fd;
}

inline UniqueFd ConnectRaw(const std::string& path) {
  UniqueFd fd = NewSeqpacket();
  const sockaddr_un address = SocketAddress(path);
  const int result = connect(
      fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return result == 0 ? std::move(fd) : UniqueFd();
}

inline UniqueFd ListenRaw(const std::string& path, int backlog) {
  UniqueFd fd = NewSeqpacket();
  const sockaddr_un address = SocketAddress(path);
  const bool ok = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                       sizeof(address)) == 0 &&
                  (backlog < 0 || listen(fd.get(), backlog) == 0);
  return ok ? std::move(fd) : UniqueFd();
}

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_MAPPING_RAW_SOCKET_H_
