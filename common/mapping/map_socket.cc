#include "common/mapping/map_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/mapping/socket_file.h"

namespace farkv {
namespace {

// How long accepting rests when the process is out of descriptors.
constexpr absl::Duration kAcceptRest = absl::Milliseconds(100);

struct Connection {
  UniqueFd fd;
  PeerCredentials peer;
  absl::Time deadline;
};

absl::StatusOr<PeerCredentials> Credentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return absl::ErrnoToStatus(errno, "SO_PEERCRED");
  }
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

// One message, with `fd` unless that is -1. A fresh connection has
// room for it; a peer that arranged otherwise gets nothing.
void SendReply(int socket, const MapReplyBytes& bytes, int fd) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  }
  (void)sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int PollTimeoutMs(absl::Time until, absl::Time now) {
  if (until == absl::InfiniteFuture()) return -1;
  const absl::Duration left = std::max(until - now, absl::ZeroDuration());
  return static_cast<int>(
             absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)))) +
         1;
}

}  // namespace

struct MapServer::Impl {
  Impl(const MapServerOptions& server_options, MapHandler map_handler,
       SocketFile socket_file, UniqueFd stop_fd)
      : options(server_options),
        handler(std::move(map_handler)),
        path(socket_file.path()),
        stop(std::move(stop_fd)),
        file(std::move(socket_file)) {}

  void Run();
  void Accept();
  void Serve(Connection& connection);
  absl::StatusOr<MapGrant> Answer(std::span<const std::byte> bytes,
                                  const PeerCredentials& peer,
                                  uint32_t& slab_id);

  const MapServerOptions options;
  const MapHandler handler;
  const std::string path;
  const UniqueFd stop;  // eventfd: readable once Stop was called
  absl::Mutex stop_mutex;
  std::thread thread ABSL_GUARDED_BY(stop_mutex);

  // Of the thread alone.
  SocketFile file;
  std::vector<Connection> connections;
  absl::Time accept_again = absl::InfinitePast();
};

void MapServer::Impl::Run() {
  while (true) {
    const absl::Time now = Clock::Boottime().Now();
    const bool room =
        connections.size() < static_cast<size_t>(options.max_connections);
    const bool resting = accept_again > now;
    std::vector<pollfd> fds;
    fds.push_back({stop.get(), POLLIN, 0});
    fds.push_back({room && !resting ? file.fd() : -1, POLLIN, 0});
    absl::Time wake = room && resting ? accept_again : absl::InfiniteFuture();
    for (const Connection& connection : connections) {
      fds.push_back({connection.fd.get(), POLLIN, 0});
      wake = std::min(wake, connection.deadline);
    }
    if (poll(fds.data(), fds.size(), PollTimeoutMs(wake, now)) < 0) continue;
    if (fds[0].revents != 0) break;
    for (size_t i = 0; i < connections.size(); ++i) {
      if (fds[i + 2].revents != 0) Serve(connections[i]);
    }
    // Whoever has asked is served above, also when this thread comes late.
    std::erase_if(connections, [now](const Connection& connection) {
      return !connection.fd.valid() || connection.deadline <= now;
    });
    if (fds[1].revents != 0) Accept();
  }
  connections.clear();
  file.Close();
}

void MapServer::Impl::Accept() {
  UniqueFd fd(
      accept4(file.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const absl::Time now = Clock::Boottime().Now();
  if (!fd.valid()) {
    const bool nothing =
        errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (!nothing) accept_again = now + kAcceptRest;
    return;
  }
  const absl::StatusOr<PeerCredentials> peer = Credentials(fd.get());
  if (!peer.ok()) return;
  connections.push_back({std::move(fd), *peer, now + options.request_timeout});
}

// Reads the one request of a connection, answers and closes it.
void MapServer::Impl::Serve(Connection& connection) {
  // One byte more than a request, so that a longer one is seen as longer.
  std::array<std::byte, kMapRequestBytes + 1> bytes;
  const ssize_t received =
      recv(connection.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const UniqueFd socket = std::move(connection.fd);
  if (received <= 0) return;
  MapReply reply;
  absl::StatusOr<MapGrant> grant =
      Answer({bytes.data(), static_cast<size_t>(received)}, connection.peer,
             reply.slab_id);
  reply.status = grant.status();
  if (grant.ok()) reply.size_bytes = grant->size_bytes;
  SendReply(socket.get(), EncodeMapReply(reply),
            grant.ok() ? grant->fd.get() : -1);
}

absl::StatusOr<MapGrant> MapServer::Impl::Answer(
    std::span<const std::byte> bytes, const PeerCredentials& peer,
    uint32_t& slab_id) {
  FARKV_ASSIGN_OR_RETURN(const MapRequest request, DecodeMapRequest(bytes));
  slab_id = request.slab_id;
  FARKV_ASSIGN_OR_RETURN(MapGrant grant, handler(request, peer));
  if (!grant.fd.valid()) {
    return absl::InternalError(
        absl::StrCat("slab ", slab_id, " was granted without a descriptor"));
  }
  return grant;
}

absl::StatusOr<std::unique_ptr<MapServer>> MapServer::Start(
    const MapServerOptions& options, MapHandler handler) {
  if (options.max_connections < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("map socket: max_connections is ", options.max_connections,
                     ", must be at least 1"));
  }
  FARKV_ASSIGN_OR_RETURN(const std::string path,
                         MapSocketPath(options.map_dir, options.node_id));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  FARKV_ASSIGN_OR_RETURN(
      SocketFile file,
      SocketFile::Listen(options.map_dir, path, options.max_connections));
  auto impl = std::make_unique<Impl>(options, std::move(handler),
                                     std::move(file), std::move(stop));
  absl::MutexLock lock(&impl->stop_mutex);
  impl->thread = std::thread([raw = impl.get()] { raw->Run(); });
  return std::unique_ptr<MapServer>(new MapServer(std::move(impl)));
}

MapServer::MapServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MapServer::~MapServer() { Stop(); }

const std::string& MapServer::path() const { return impl_->path; }

void MapServer::Stop() {
  std::thread thread;
  {
    absl::MutexLock lock(&impl_->stop_mutex);
    thread = std::move(impl_->thread);
  }
  if (!thread.joinable()) return;
  const uint64_t one = 1;
  (void)!write(impl_->stop.get(), &one, sizeof(one));
  thread.join();
}

}  // namespace farkv
