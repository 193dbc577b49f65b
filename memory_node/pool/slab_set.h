// All slabs of a node, bounded in bytes. Each belongs to one (tenant, stride)
// for its whole life: when another one needs the room, an empty slab is closed
// - its memory and descriptor given back - and a new one is made, so bytes of
// one tenant are never seen by another, mapped or not.
//
// Memory may be made ahead: then it is ready, belongs to nobody, and becomes a
// slab of whoever comes first. So that a tenant which grows into the room of
// others does not wait each time, each slab closed for one earns it another,
// made ahead.
//
// Thread-compatible; PagePool holds the lock. Making memory is slow and done
// by the pool outside the lock: Reserve -> (unlocked) make -> Add or Abandon;
// ReserveAhead -> make -> AddReady or AbandonAhead.
#ifndef FARKV_MEMORY_NODE_POOL_SLAB_SET_H_
#define FARKV_MEMORY_NODE_POOL_SLAB_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "memory_node/pool/slab.h"

namespace farkv {

// Next names of slabs and pages; the sets of one node share it.
struct SlabNumbers {
  std::atomic<uint32_t> slab_id{1};  // never reused: stale maps name no new one
  // One for all slabs: a page that was freed and reserved again, or moved,
  // never has an older generation of its name, wherever the new one lies.
  std::atomic<uint64_t> generation{1};
};

class SlabSet {
 public:
  // `capacity_bytes` is used in whole slabs of `slab_bytes`. `numbers` outlives
  // the set.
  SlabSet(size_t slab_bytes, size_t capacity_bytes, SlabNumbers& numbers)
      : slab_bytes_(slab_bytes),
        max_slabs_(capacity_bytes / slab_bytes),
        numbers_(numbers) {}

  size_t slab_bytes() const { return slab_bytes_; }
  size_t max_slabs() const { return max_slabs_; }
  size_t num_slabs() const { return slabs_.size(); }

  size_t FreePages(const SlabClass& slab_class) const;
  // Pages of the class that could be had in all, new slabs included, also
  // those that others are making.
  size_t ReachablePages(const SlabClass& slab_class) const;

  // Gives out a page; FreePages must not be zero.
  PageHandle Take(const SlabClass& slab_class);
  // nullptr when the slab has been closed.
  Slab* Find(uint32_t slab_id) const;
  // Call after each page that became free.
  void NoteFreed(Slab& slab);

  // Books one slab; closes an empty one of another class when there is no room
  // and returns it, for destruction outside the lock. False in `reserved` when
  // nothing can be had.
  struct Reservation {
    bool reserved = false;
    std::unique_ptr<Slab> closed;
  };
  Reservation Reserve(const SlabClass& slab_class);
  void Add(const SlabClass& slab_class, SlabMemory memory);
  void Abandon(const SlabClass& slab_class);
  // Slabs of the class that are reserved and not yet there.
  size_t Booked(const SlabClass& slab_class) const;

  // Whether ReserveAhead would reserve: there is room, or one is owed.
  bool WantsAhead() const;
  Reservation ReserveAhead();
  void AddReady(SlabMemory memory);
  void AbandonAhead();
  // Makes a slab of the class of ready memory; false when none is ready.
  bool AssignReady(const SlabClass& slab_class);
  // Nothing is ready but soon something will be, and there is no room besides.
  bool ReadySoon() const {
    return ready_.empty() && making_ahead_ > 0 && Room() == 0;
  }
  const std::vector<SlabMemory>& ready() const { return ready_; }

  template <typename Visitor>
  void ForEach(Visitor visitor) const {
    for (const auto& [id, slab] : slabs_) visitor(*slab);
  }

 private:
  struct ClassState {
    size_t slabs = 0;
    size_t free_pages = 0;
    std::set<uint32_t> with_room;  // lowest first, so that newer slabs empty
  };
  // Slabs that could still be made.
  size_t Room() const {
    return max_slabs_ - slabs_.size() - booked_ - ready_.size() - making_ahead_;
  }
  size_t EmptyOfOthers(const SlabClass& slab_class) const;
  std::unique_ptr<Slab> CloseEmptyOfOthers(const SlabClass& slab_class);
  void Insert(const SlabClass& slab_class, SlabMemory memory);
  void EndBooking(const SlabClass& slab_class);
  std::unique_ptr<Slab> Remove(uint32_t slab_id);

  const size_t slab_bytes_;
  const size_t max_slabs_;
  SlabNumbers& numbers_;
  // Reserved for a class, memory under way; by class, and together.
  std::map<SlabClass, size_t> booked_of_;
  size_t booked_ = 0;
  size_t making_ahead_ = 0;
  std::vector<SlabMemory> ready_;
  // For whom a slab was closed; nobody once the one made ahead is under way.
  std::optional<SlabClass> owed_;
  std::map<uint32_t, std::unique_ptr<Slab>> slabs_;
  std::map<SlabClass, ClassState> classes_;
  std::set<uint32_t> empty_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_SLAB_SET_H_
