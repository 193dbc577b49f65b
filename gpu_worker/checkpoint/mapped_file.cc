#include "gpu_worker/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace farkv {

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path, size_t min_bytes) {
  // O_NONBLOCK: a FIFO of that name is refused below instead of waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot open \"", path, "\": ", std::strerror(errno)));
  }
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is not a regular file"));
  }
  const auto size = static_cast<size_t>(info.st_size);
  min_bytes = std::max<size_t>(min_bytes, 1);
  if (size < min_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" has ", size,
                                                   " bytes, the format needs ",
                                                   min_bytes, " at least"));
  }
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" of ", size,
                     " bytes cannot be mapped: ", std::strerror(errno)));
  }
  std::unique_ptr<MappedFile> file(
      new MappedFile({static_cast<const std::byte*>(mapped), size}));
  if (absl::StartsWith({static_cast<const char*>(mapped), size},
                       "version https://git-lfs.")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", path, "\" is not the file but ", size,
        " bytes of Git LFS that stand for it; \"git lfs pull\" fetches it"));
  }
  return file;
}

MappedFile::~MappedFile() {
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace farkv
