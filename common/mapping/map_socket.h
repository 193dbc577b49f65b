// The map server of a memory node: hands slab descriptors to workers on the
// same host through a Unix socket file. DESIGN 5.5; ENVIRONMENT 0.5.
//
// Goals: a reader gets a descriptor that it can only map read-only; a bounded
// number of connections, each with a deadline; the socket file of a dead
// process is replaced, that of a live one is not. Non-goals: who may have
// which slab (the handler decides) and how long (leases decide).
//
// Thread-safe. One thread of its own; the handler runs on it, with no lock
// held, and must not block.
#ifndef FARKV_COMMON_MAPPING_MAP_SOCKET_H_
#define FARKV_COMMON_MAPPING_MAP_SOCKET_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mapping/map_protocol.h"
#include "common/mapping/unique_fd.h"

namespace farkv {

// The process at the other end as the kernel vouches for it (SO_PEERCRED).
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// What a handler grants: a descriptor of its own (MemfdSlab::DuplicateFd) and
// the slab's size. The server closes the descriptor once it is sent.
struct MapGrant {
  UniqueFd fd;
  uint64_t size_bytes = 0;
};

// An error is sent to the worker as it is.
using MapHandler = std::function<absl::StatusOr<MapGrant>(
    const MapRequest& request, const PeerCredentials& peer)>;

struct MapServerOptions {
  std::string map_dir;  // must exist and be writable
  std::string node_id;  // names the socket: <map-dir>/<node-id>.sock
  int max_connections = 64;
  // A connection that has not sent its request by then is closed.
  absl::Duration request_timeout = absl::Seconds(5);
};

class MapServer {
 public:
  struct Impl;

  // Binds (mode 0660) and starts. ALREADY_EXISTS when a live process listens
  // there; NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT for an unusable
  // path; FAILED_PRECONDITION when something else than a socket is in the
  // way. Every message names the path.
  static absl::StatusOr<std::unique_ptr<MapServer>> Start(
      const MapServerOptions& options, MapHandler handler);
  ~MapServer();  // Stop()

  const std::string& path() const;
  // Closes every connection, ends the thread and removes the socket file if
  // it is still this server's. Idempotent.
  void Stop();

 private:
  explicit MapServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_MAPPING_MAP_SOCKET_H_
