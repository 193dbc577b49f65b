#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/transport.h"

namespace farkv {

BufferLease::BufferLease(std::span<std::byte> bytes,
                         absl::AnyInvocable<void() &&> release)
    : bytes_(bytes), release_(std::move(release)) {}

BufferLease BufferLease::Owning(std::vector<std::byte> bytes) {
  const std::span<std::byte> view(bytes);
  // Moving a vector leaves its elements where they are.
  return BufferLease(view, [owned = std::move(bytes)]() {});
}

absl::StatusOr<BufferLease> BufferLease::Allocate(size_t bytes) {
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory is left for a body of ", bytes, " bytes"));
  }
  const std::span<std::byte> view(memory.get(), bytes);
  return BufferLease(view, [owned = std::move(memory)]() {});
}

BufferLease::BufferLease(BufferLease&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      release_(std::exchange(other.release_, nullptr)) {}

BufferLease& BufferLease::operator=(BufferLease&& other) noexcept {
  if (this == &other) return *this;
  BufferLease old(std::move(*this));
  bytes_ = std::exchange(other.bytes_, {});
  release_ = std::exchange(other.release_, nullptr);
  return *this;
}

BufferLease::~BufferLease() {
  if (release_) std::move(release_)();
}

}  // namespace farkv
