#include "common/transport/ucx/socket_address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

// The storage as the family's own type.
template <typename T>
T As(const sockaddr_storage& storage) {
  T address{};
  std::memcpy(&address, &storage, sizeof(address));
  return address;
}

// getaddrinfo's error, or 0 and the first address that it knows.
int Lookup(const std::string& host, uint16_t port, int flags,
           SocketAddress* address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
  if (error != 0) return error;
  const absl::Cleanup free_list = [list] { freeaddrinfo(list); };
  std::memcpy(&address->storage, list->ai_addr, list->ai_addrlen);
  address->length = list->ai_addrlen;
  return 0;
}

}  // namespace

uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET6) {
    return ntohs(As<sockaddr_in6>(storage).sin6_port);
  }
  return ntohs(As<sockaddr_in>(storage).sin_port);
}

bool SocketAddress::is_loopback() const {
  if (storage.ss_family == AF_INET6) {
    const in6_addr address = As<sockaddr_in6>(storage).sin6_addr;
    return std::memcmp(&address, &in6addr_loopback, sizeof(address)) == 0;
  }
  return ntohl(As<sockaddr_in>(storage).sin_addr.s_addr) >> 24 == 127;
}

std::string SocketAddress::ToString() const {
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  const socklen_t size = length != 0 ? length : sizeof(storage);
  if (getnameinfo(get(), size, host, sizeof(host), service, sizeof(service),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown address";
  }
  const bool v6 = storage.ss_family == AF_INET6;
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", service);
}

std::optional<SocketAddress> ParseNumericAddress(const std::string& host,
                                                 uint16_t port) {
  SocketAddress address;
  if (Lookup(host, port, AI_NUMERICHOST, &address) != 0) return std::nullopt;
  return address;
}

absl::StatusOr<SocketAddress> ResolveAddress(const std::string& host,
                                             uint16_t port) {
  SocketAddress address;
  const int error = Lookup(host, port, 0, &address);
  if (error == 0) return address;
  const std::string text =
      absl::StrCat("cannot resolve host \"", host, "\": ", gai_strerror(error));
  return error == EAI_AGAIN ? absl::UnavailableError(text)
                            : absl::InvalidArgumentError(text);
}

}  // namespace farkv
