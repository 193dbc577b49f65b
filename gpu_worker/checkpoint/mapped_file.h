// A whole regular file mapped read-only. The bytes live as long as the object;
// they must not be cut short by others meanwhile (the kernel would deliver
// SIGBUS), which a checkpoint's owner has no reason to do. Thread-safe.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_MAPPED_FILE_H_
#define FARKV_GPU_WORKER_CHECKPOINT_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace farkv {

class MappedFile {
 public:
  // NOT_FOUND for a file that cannot be opened; INVALID_ARGUMENT when it is no
  // regular file or has fewer than `min_bytes` (at least 1).
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path, size_t min_bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_MAPPED_FILE_H_
