// The bytes behind a slab, whoever made them: a memfd in the real node, heap
// memory in tests. Move-only; given back when it dies. Thread-compatible.
#ifndef FARKV_MEMORY_NODE_POOL_SLAB_MEMORY_H_
#define FARKV_MEMORY_NODE_POOL_SLAB_MEMORY_H_

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/mapping/unique_fd.h"

namespace farkv {

class SlabMemory {
 public:
  // A descriptor of its own for a mapped reader.
  using Duplicate = std::function<absl::StatusOr<UniqueFd>()>;

  SlabMemory() = default;
  // `duplicate` may be empty: nothing can be mapped. It and `bytes` are valid
  // until `release` has run.
  SlabMemory(std::span<std::byte> bytes, bool huge_pages, Duplicate duplicate,
             absl::AnyInvocable<void() &&> release)
      : bytes_(bytes),
        huge_pages_(huge_pages),
        duplicate_(std::move(duplicate)),
        release_(std::move(release)) {}
  SlabMemory(SlabMemory&& other) noexcept { *this = std::move(other); }
  SlabMemory& operator=(SlabMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(huge_pages_, other.huge_pages_);
    std::swap(duplicate_, other.duplicate_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~SlabMemory() {
    if (release_ != nullptr) std::move(release_)();
  }

  std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool huge_pages() const { return huge_pages_; }
  // FAILED_PRECONDITION where there is no descriptor.
  absl::StatusOr<UniqueFd> DuplicateDescriptor() const;

 private:
  std::span<std::byte> bytes_;
  bool huge_pages_ = false;
  Duplicate duplicate_;
  absl::AnyInvocable<void() &&> release_;
};

// Makes zeroed memory of `bytes`, aligned to 4 KiB. RESOURCE_EXHAUSTED naming
// the size and the cause. May take tens of milliseconds (first touch); called
// without a lock.
using SlabSource = std::function<absl::StatusOr<SlabMemory>(size_t bytes)>;

// Ordinary process memory: no descriptor, so nothing can be mapped.
absl::StatusOr<SlabMemory> AllocateHeapSlab(size_t bytes);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_SLAB_MEMORY_H_
