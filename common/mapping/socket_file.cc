#include "common/mapping/socket_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

constexpr absl::Duration kTurnTimeout = absl::Seconds(30);
constexpr int kTurnRetryMs = 5;
constexpr mode_t kMode = 0660;

absl::Status Error(const std::string& path, const char* call, int error) {
  return absl::ErrnoToStatus(error,
                             absl::StrCat("map socket ", path, ": ", call));
}

sockaddr_un Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd NewSocket() {
  return UniqueFd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Takes the turn in `map_dir`: held until the descriptor is closed.
absl::StatusOr<UniqueFd> TakeTurn(const std::string& map_dir,
                                  const std::string& path) {
  UniqueFd turn(open(map_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!turn.valid()) return Error(path, "opening its directory", errno);
  const absl::Time deadline = Clock::Boottime().Now() + kTurnTimeout;
  while (flock(turn.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Error(path, "locking its directory", errno);
    }
    if (Clock::Boottime().Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "map socket ", path, ": another process has held ", map_dir,
          " locked for ", absl::FormatDuration(kTurnTimeout)));
    }
    poll(nullptr, 0, kTurnRetryMs);
  }
  return turn;
}

// Removes a socket file whose process is dead; an error for anything else.
absl::Status ClearWay(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Error(path, "lstat", errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "map socket ", path, ": something else than a socket is there"));
  }
  const UniqueFd probe = NewSocket();
  if (!probe.valid()) return Error(path, "socket", errno);
  const sockaddr_un address = Address(path);
  const int result =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address));
  // Anything but a refusal (a full backlog, another kind of socket) means
  // that somebody listens.
  if (result == 0 || errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(
        absl::StrCat("map socket ", path,
                     ": a live process listens there; is a node with "
                     "this id running?"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error(path, "removing the file of a dead process", errno);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SocketFile> SocketFile::Listen(const std::string& map_dir,
                                              const std::string& path,
                                              int backlog) {
  FARKV_ASSIGN_OR_RETURN(const UniqueFd turn, TakeTurn(map_dir, path));
  FARKV_RETURN_IF_ERROR(ClearWay(path));
  SocketFile file;
  UniqueFd fd = NewSocket();
  if (!fd.valid()) return Error(path, "socket", errno);
  const sockaddr_un address = Address(path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0) {
    return Error(path, "bind", errno);
  }
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return Error(path, "lstat", errno);
  file.fd_ = std::move(fd);
  file.path_ = path;
  file.device_ = info.st_dev;
  file.inode_ = info.st_ino;
  // Nobody can connect before listen(), so the mode is there in time.
  if (chmod(path.c_str(), kMode) != 0 || listen(file.fd(), backlog) != 0) {
    const absl::Status status = Error(path, "listen", errno);
    file.Close();
    return status;
  }
  return file;
}

void SocketFile::Close() {
  if (!fd_.valid()) return;
  struct stat info;
  if (lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    unlink(path_.c_str());
  }
  fd_ = UniqueFd();
}

}  // namespace farkv
