// A listening SOCK_SEQPACKET socket bound to a file, with the rules for what
// may already be there. Thread-compatible. Private to this room.
#ifndef FARKV_COMMON_MAPPING_SOCKET_FILE_H_
#define FARKV_COMMON_MAPPING_SOCKET_FILE_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mapping/unique_fd.h"

namespace farkv {

class SocketFile {
 public:
  // Binds `path` (checked by CheckSocketPath) with mode 0660 and listens. A
  // socket file nobody listens on is replaced. Starts in one directory take
  // turns (a lock on the directory, waited for up to 30 seconds), so that
  // two starters cannot both take a file for stale. Errors as in map_socket.h.
  static absl::StatusOr<SocketFile> Listen(const std::string& map_dir,
                                           const std::string& path,
                                           int backlog);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  // Closes the socket; removes the file unless another one has taken its
  // place. Idempotent.
  void Close();

 private:
  UniqueFd fd_;
  std::string path_;
  dev_t device_ = 0;  // identity of our file
  ino_t inode_ = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_MAPPING_SOCKET_FILE_H_
