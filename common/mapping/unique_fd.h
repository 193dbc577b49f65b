// A file descriptor with one owner, closed at the end. Thread-compatible.
#ifndef FARKV_COMMON_MAPPING_UNIQUE_FD_H_
#define FARKV_COMMON_MAPPING_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace farkv {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace farkv

#endif  // FARKV_COMMON_MAPPING_UNIQUE_FD_H_
