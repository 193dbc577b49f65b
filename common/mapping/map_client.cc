#include "common/mapping/map_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/mapping/memfd_slab.h"

namespace farkv {
namespace {

// More descriptors than we ask for are received so that they can be closed.
constexpr size_t kMaxReceivedFds = 4;

// One request on one connection, until `deadline` of the boot clock.
class Exchange {
 public:
  Exchange(const std::string& path, absl::Time deadline)
      : path_(path), deadline_(deadline) {}

  absl::Status Connect();
  absl::Status Send(const MapRequestBytes& bytes);
  // The reply and, with an OK status in it, exactly one descriptor.
  absl::StatusOr<MapReply> Receive(UniqueFd& slab);

 private:
  absl::Status Error(const char* call, int error) const {
    const bool late = error == EAGAIN || error == EINPROGRESS;
    const std::string what = absl::StrCat("map socket ", path_, ": ", call);
    if (late)
      return absl::DeadlineExceededError(absl::StrCat(what,
                                                      " timed "
                                                      "out"));
    return absl::UnavailableError(absl::ErrnoToStatus(error, what).message());
  }
  // Time left as a socket option; at least a microsecond, since zero means
  // for ever.
  absl::Status SetTimeout(int option) const {
    const absl::Duration left =
        std::max(deadline_ - Clock::Boottime().Now(), absl::Microseconds(1));
    const timeval value = absl::ToTimeval(left);
    if (setsockopt(socket_.get(), SOL_SOCKET, option, &value, sizeof(value)) ==
        0) {
      return absl::OkStatus();
    }
    return Error("setsockopt", errno);
  }

  const std::string& path_;
  const absl::Time deadline_;
  UniqueFd socket_;
};

absl::Status Exchange::Connect() {
  socket_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return Error("socket", errno);
  FARKV_RETURN_IF_ERROR(SetTimeout(SO_SNDTIMEO));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  int result = 0;
  do {
    result = connect(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                     sizeof(address));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? absl::OkStatus() : Error("connect", errno);
}

absl::Status Exchange::Send(const MapRequestBytes& bytes) {
  FARKV_RETURN_IF_ERROR(SetTimeout(SO_SNDTIMEO));
  ssize_t sent = 0;
  do {
    sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? Error("send", errno) : absl::OkStatus();
}

std::vector<UniqueFd> TakeDescriptors(msghdr& message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

absl::StatusOr<MapReply> Exchange::Receive(UniqueFd& slab) {
  FARKV_RETURN_IF_ERROR(SetTimeout(SO_RCVTIMEO));
  MapReplyBytes bytes;
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxReceivedFds * sizeof(int))>
      control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    received = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return Error("receive", errno);
  std::vector<UniqueFd> fds = TakeDescriptors(message);
  if (received == 0) {
    return absl::UnavailableError(
        absl::StrCat("map socket ", path_, ": closed without an answer"));
  }
  FARKV_ASSIGN_OR_RETURN(
      MapReply reply,
      DecodeMapReply({bytes.data(), static_cast<size_t>(received)}));
  const size_t expected = reply.status.ok() ? 1 : 0;
  if (fds.size() != expected || (message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("map socket ", path_, ": ", fds.size(),
                     " descriptors came with the reply, expected ", expected));
  }
  if (expected == 1) slab = std::move(fds.front());
  return reply;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedSlab>> MappedSlab::Map(
    UniqueFd fd, uint64_t size_bytes) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSlabSeals) != kSlabSeals) {
    return absl::FailedPreconditionError(
        seals < 0 ? std::string("slab descriptor is not a memfd")
                  : absl::StrCat("slab has seals 0x", absl::Hex(seals),
                                 ", needs 0x", absl::Hex(kSlabSeals)));
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, "fstat of a slab");
  }
  if (size_bytes == 0 || static_cast<uint64_t>(info.st_size) != size_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "slab has ", info.st_size, " bytes, the node said ", size_bytes));
  }
  void* base = mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("mapping a slab of ", size_bytes, " bytes"));
  }
  // A wish that only matters for slabs without reserved huge pages.
  madvise(base, size_bytes, MADV_HUGEPAGE);
  madvise(base, size_bytes, MADV_DONTDUMP);
  return std::shared_ptr<const MappedSlab>(
      new MappedSlab(static_cast<const std::byte*>(base), size_bytes));
}

MappedSlab::~MappedSlab() {
  munmap(const_cast<std::byte*>(base_), size_bytes_);
}

MapClient::MapClient(std::string socket_path, absl::Duration timeout)
    : socket_path_(std::move(socket_path)), timeout_(timeout) {}

absl::StatusOr<std::shared_ptr<const MappedSlab>> MapClient::Fetch(
    const MapRequest& request) {
  {
    absl::MutexLock lock(&mutex_);
    const auto it = slabs_.find(request.slab_id);
    if (it != slabs_.end()) return it->second;
  }
  FARKV_RETURN_IF_ERROR(CheckSocketPath(socket_path_));
  FARKV_ASSIGN_OR_RETURN(const MapRequestBytes bytes,
                         EncodeMapRequest(request));
  Exchange exchange(socket_path_, Clock::Boottime().Now() + timeout_);
  FARKV_RETURN_IF_ERROR(exchange.Connect());
  FARKV_RETURN_IF_ERROR(exchange.Send(bytes));
  UniqueFd fd;
  FARKV_ASSIGN_OR_RETURN(const MapReply reply, exchange.Receive(fd));
  FARKV_RETURN_IF_ERROR(reply.status);
  if (reply.slab_id != request.slab_id) {
    return absl::InvalidArgumentError(
        absl::StrCat("map socket ", socket_path_, ": asked for slab ",
                     request.slab_id, ", got ", reply.slab_id));
  }
  FARKV_ASSIGN_OR_RETURN(std::shared_ptr<const MappedSlab> slab,
                         MappedSlab::Map(std::move(fd), reply.size_bytes));
  absl::MutexLock lock(&mutex_);
  // Another thread may have been faster; then its mapping is the one we keep.
  return slabs_.try_emplace(request.slab_id, std::move(slab)).first->second;
}

void MapClient::Forget(uint32_t slab_id) {
  std::shared_ptr<const MappedSlab> dropped;  // unmapped outside the lock
  absl::MutexLock lock(&mutex_);
  const auto it = slabs_.find(slab_id);
  if (it == slabs_.end()) return;
  dropped = std::move(it->second);
  slabs_.erase(it);
}

size_t MapClient::num_slabs() const {
  absl::MutexLock lock(&mutex_);
  return slabs_.size();
}

uint64_t MapClient::mapped_bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& [id, slab] : slabs_) bytes += slab->size_bytes();
  return bytes;
}

}  // namespace farkv
