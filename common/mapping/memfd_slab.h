// A slab of a memory node's pool: anonymous shared memory that its owner reads
// and writes and that nobody else can ever write. DESIGN 5.5 and 6.
//
// Goals: one memfd per slab, so that its descriptor can be passed to a worker
// on the same host; sealed after mapping against further writers and size
// changes; huge pages where there are any. Non-goals: pages inside the slab,
// and who may have the descriptor (the pool and the map server's handler).
//
// The owner's mapping and the memory live until the MemfdSlab is destroyed and
// every passed descriptor and reader's mapping is gone. Thread-compatible;
// base() may be used from any thread.
#ifndef FARKV_COMMON_MAPPING_MEMFD_SLAB_H_
#define FARKV_COMMON_MAPPING_MEMFD_SLAB_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mapping/unique_fd.h"

namespace farkv {

// Seals of every slab: no resize, no new writer, no further seals.
extern const int kSlabSeals;

enum class SlabPages {
  kHugeTlb,  // reserved 2 MiB pages
  kAdvised,  // 4 KiB pages, transparent huge pages asked for
};

struct MemfdSlabOptions {
  std::string name = "farkv-slab";       // shown in /proc/PID/maps
  size_t size_bytes = size_t{64} << 20;  // a multiple of 4 KiB
  // Try reserved huge pages first (size a multiple of 2 MiB); fall back to
  // advised ones, as pages() then says.
  bool huge_pages = true;
  // Bind the memory to this NUMA node; -1: wherever it is touched.
  int numa_node = -1;
};

class MemfdSlab {
 public:
  // INVALID_ARGUMENT for a bad size, RESOURCE_EXHAUSTED without memory or
  // descriptors, FAILED_PRECONDITION when the NUMA node cannot be bound to.
  static absl::StatusOr<MemfdSlab> Create(const MemfdSlabOptions& options);

  MemfdSlab(MemfdSlab&& other) noexcept;
  MemfdSlab& operator=(MemfdSlab&& other) noexcept;
  ~MemfdSlab();

  std::byte* base() const { return base_; }
  size_t size_bytes() const { return size_bytes_; }
  SlabPages pages() const { return pages_; }

  // Backs the whole slab with memory, in steps of 16 MiB. `progress` is told
  // bytes done and total after each; false ends it with CANCELLED. Contents
  // are kept, so call it before others write. RESOURCE_EXHAUSTED when memory
  // runs out.
  absl::Status Prefault(
      absl::FunctionRef<bool(size_t done, size_t total)> progress);

  // A descriptor of its own for passing on; the slab may be destroyed before
  // it is closed.
  absl::StatusOr<UniqueFd> DuplicateFd() const;

 private:
  MemfdSlab(UniqueFd fd, std::byte* base, size_t size_bytes, SlabPages pages);

  UniqueFd fd_;
  std::byte* base_ = nullptr;
  size_t size_bytes_ = 0;
  SlabPages pages_ = SlabPages::kAdvised;
};

}  // namespace farkv

#endif  // FARKV_COMMON_MAPPING_MEMFD_SLAB_H_
