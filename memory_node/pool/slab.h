// One slab: memory of one (tenant, stride), cut into pages. Knows which pages
// are free, given out or in quarantine, their generations and their pins.
//
// A page's life: free -> used (Take: its new generation is stored in the page,
// then a release fence) -> free again, at once (Release) or by way of
// quarantine. A page with pins stays where it is until the last pin is gone,
// so no copy ever runs over memory that was given away.
//
// Thread-compatible; SlabSet owns slabs, PagePool holds the lock.
#ifndef FARKV_MEMORY_NODE_POOL_SLAB_H_
#define FARKV_MEMORY_NODE_POOL_SLAB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "memory_node/pool/slab_memory.h"

namespace farkv {

// What a slab is for. Pages of two tenants never share a slab.
struct SlabClass {
  std::string tenant;
  size_t stride = 0;  // bytes from page to page, a multiple of 4 KiB

  friend auto operator<=>(const SlabClass&, const SlabClass&) = default;
};

// Names one page of the pool for one generation. A value; it owns nothing.
struct PageHandle {
  uint32_t slab_id = 0;
  uint32_t page = 0;  // within the slab
  Generation generation;
  uint64_t offset = 0;        // bytes from the start of the slab
  std::byte* data = nullptr;  // use it under a PagePin only

  friend bool operator==(const PageHandle&, const PageHandle&) = default;
};

class Slab {
 public:
  Slab(uint32_t id, SlabClass slab_class, SlabMemory memory);

  uint32_t id() const { return id_; }
  const SlabClass& slab_class() const { return class_; }
  const SlabMemory& memory() const { return memory_; }
  size_t num_pages() const { return pages_.size(); }
  size_t num_free() const { return free_.size(); }
  size_t num_quarantined() const { return num_quarantined_; }
  bool empty() const { return free_.size() == pages_.size(); }
  uint32_t pins(uint32_t page) const { return pages_[page].pins; }

  // Gives out a free page; there must be one. `generation` is higher than that
  // of every page given out before by the pool.
  PageHandle Take(Generation generation);
  // FAILED_PRECONDITION naming both generations, or the state, when `handle`
  // is not a used page any more.
  absl::Status CheckUsed(const PageHandle& handle) const;
  // The same for a page in quarantine.
  absl::Status CheckQuarantined(const PageHandle& handle) const;

  // The next four take a page that CheckUsed accepted; Restore takes one in
  // quarantine, Pin either. True from Unpin, Release, Restore: the page is free
  // now.
  void Pin(uint32_t page);
  bool Unpin(uint32_t page);
  bool Release(uint32_t page);
  void Quarantine(uint32_t page);
  bool Restore(uint32_t page);

 private:
  // kReleased: given back, but still pinned.
  enum class State : uint8_t { kFree, kUsed, kQuarantined, kReleased };
  struct Page {
    uint64_t generation = 0;
    uint32_t pins = 0;
    State state = State::kFree;
  };
  static const char* Name(State state);
  absl::Status CheckState(const PageHandle& handle, State state) const;

  const uint32_t id_;
  const SlabClass class_;
  const SlabMemory memory_;
  std::vector<Page> pages_;
  std::vector<uint32_t> free_;  // a stack: the last one freed is warm
  size_t num_quarantined_ = 0;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_SLAB_H_
