#include "admin_cli/listen_probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/address.h"

namespace farkv {
namespace {

absl::Status ErrnoError() {
  return absl::UnavailableError(std::strerror(errno));
}

}  // namespace

absl::Status TryListen(const std::string& address) {
  FARKV_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(
      parsed.host.c_str(), absl::StrCat(parsed.port).c_str(), &hints, &list);
  if (code != 0) return absl::UnavailableError(gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             freeaddrinfo);
  const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoError();
  const absl::Cleanup close_fd = [fd] { close(fd); };
  // Connections of a listener that has ended are no reason to refuse.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, 1) != 0) {
    return ErrnoError();
  }
  return absl::OkStatus();
}

}  // namespace farkv
