// The pages of a memory node. DESIGN 6 "Pool" and "Leases".
//
// Goals: bounded by its capacity; allocation all or none; a page whose owner
// gave it back is reusable at once, a page of an expired session only when its
// quarantine is over; no memory is reused under a running copy (pins); every
// page given out has a generation above all before it, stored in it first.
// Non-goals: knowing sessions, page contents or tiers; allocation in one piece.
//
// Slabs are made ahead of need when somebody calls MakeAhead (pool_filler.h);
// what is missing then is made by the caller that needs it.
//
// Thread-safe. Memory of new slabs is made, and of old ones given back,
// outside the lock. Pins must not outlive the pool.
#ifndef FARKV_MEMORY_NODE_POOL_PAGE_POOL_H_
#define FARKV_MEMORY_NODE_POOL_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/session_handle.h"
#include "memory_node/pool/slab_set.h"

namespace farkv {

struct PagePoolOptions {
  // Bound on the memory of all slabs; used in whole slabs.
  size_t capacity_bytes = size_t{1} << 30;
  // DESIGN 13; tests take less.
  size_t slab_bytes = size_t{64} << 20;
  // Share of the capacity above which reservations are refused, in 1/10,000.
  int32_t high_watermark = 9500;
  // Bound on one tenant's pages, quarantined ones included; 0: none.
  size_t tenant_quota_bytes = 0;

  absl::Status Validate() const;
};

// Snapshot for metrics, the CLI and the invariant that everything came back.
struct PagePoolStats {
  size_t capacity_bytes = 0;
  size_t slabs = 0;        // ready ones included
  size_t slab_bytes = 0;   // of all slabs together
  size_t ready_bytes = 0;  // in slabs of nobody yet
  size_t used_pages = 0;   // given out; quarantine not included
  size_t used_bytes = 0;
  size_t quarantined_pages = 0;
  size_t quarantined_bytes = 0;
  size_t free_pages = 0;  // in slabs that exist
  // What is free in slabs of which some page is not: room for pages of their
  // tenant and stride only. Neither quota nor pressure count it.
  size_t stranded_bytes = 0;
  size_t pins = 0;
  bool huge_pages = false;  // every slab has them
  bool pressure = false;    // above the high watermark
};

// A page in quarantine, for reports.
struct QuarantinedPage {
  PageHandle handle;
  std::string tenant;
  size_t bytes = 0;
  SessionId owner;  // whose it was
  absl::Time until;
  uint32_t pins = 0;
};

class PagePool;

// Keeps a page's memory where it is while a copy runs. Move-only.
class PagePin {
 public:
  PagePin() = default;
  PagePin(PagePin&& other) noexcept { *this = std::move(other); }
  PagePin& operator=(PagePin&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~PagePin();

  std::byte* data() const { return handle_.data; }
  const PageHandle& handle() const { return handle_; }

 private:
  friend class PagePool;
  PagePin(PagePool* pool, const PageHandle& handle)
      : pool_(pool), handle_(handle) {}
  PagePool* pool_ = nullptr;
  PageHandle handle_;
};

class PagePool {
 public:
  // `options` must be valid; `clock` outlives the pool. Slabs and generations
  // are numbered together with those of `sibling`, which outlives the pool too;
  // nullptr: for itself.
  PagePool(const PagePoolOptions& options, SlabSource source,
           const Clock& clock, PagePool* sibling = nullptr);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // `count` pages of `stride` bytes, in any order, or none.
  // RESOURCE_EXHAUSTED naming bytes wanted and there: pool, watermark, quota
  // or the machine's memory, or when others took what was made for it.
  absl::StatusOr<std::vector<PageHandle>> Allocate(const std::string& tenant,
                                                   size_t stride, size_t count);
  // RESOURCE_EXHAUSTED when `bytes` more would break the tenant's quota.
  absl::Status CheckQuota(const std::string& tenant, size_t bytes) const;
  // The owner gave the page back: reusable at once, or after its last pin.
  // FAILED_PRECONDITION when it is not that page any more.
  absl::Status Release(const PageHandle& handle);
  // The owner is gone: reusable from `until` on. Same errors. `owner` is kept
  // for reports only.
  absl::Status Quarantine(const PageHandle& handle, absl::Time until,
                          const SessionId& owner = SessionId());
  // FAILED_PRECONDITION when the page has been given back.
  absl::StatusOr<PagePin> Pin(const PageHandle& handle);
  // The same for a page in quarantine, until that is over.
  absl::StatusOr<PagePin> PinQuarantined(const PageHandle& handle);
  // Ends the quarantine that Quarantine began with the same arguments: nobody
  // reads the page any more. Nothing when it is over already.
  void EndQuarantine(const PageHandle& handle, absl::Time until);

  // Makes one slab that whoever comes first will get, if one is wanted. False
  // when none is; the source's error, and then none is wanted before the next
  // Allocate needs one.
  absl::StatusOr<bool> MakeAhead();
  // Sleeps until one is wanted. False once StopMakingAhead was called.
  bool WaitUntilWanted();
  void StopMakingAhead();

  // Ends quarantines that are over. Returns when the next one ends, the
  // infinite future when there is none.
  absl::Time Sweep();

  // A descriptor of a slab of `tenant` for its mapped readers. NOT_FOUND for a
  // slab that was closed, PERMISSION_DENIED for another tenant's.
  struct SharedSlab {
    UniqueFd descriptor;
    size_t bytes = 0;
  };
  absl::StatusOr<SharedSlab> Share(const std::string& tenant,
                                   uint32_t slab_id) const;

  // Largest stride of a page.
  size_t slab_bytes() const { return options_.slab_bytes; }
  PagePoolStats stats() const;
  // Up to `count` pages in quarantine with generations above `after`, ascending
  // by generation; those of `owners` when it is given.
  std::vector<QuarantinedPage> Quarantined(
      Generation after, size_t count,
      const std::optional<SessionPattern>& owners) const;
  // Copies that run over the page now; 0 when its slab has been closed.
  uint32_t pins(const PageHandle& handle) const;
  // Above the high watermark.
  bool pressure() const;

 private:
  friend class PagePin;
  void Unpin(const PageHandle& handle);
  // Bytes below the high watermark.
  size_t AllowedBytes() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  absl::Status CheckQuotaLocked(const std::string& tenant, size_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckBounds(const SlabClass& slab_class, size_t count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteFreed(Slab& slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time SweepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There must be that many.
  std::vector<PageHandle> TakeLocked(const SlabClass& slab_class, size_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Memory of one slab of the class, to be added; nothing when it has free
  // pages by now, something has become ready, or another caller has ended
  // making one of the class. The lock is not held.
  absl::StatusOr<SlabMemory> MakeSlab(const SlabClass& slab_class)
      ABSL_LOCKS_EXCLUDED(mutex_);

  using Check = absl::Status (Slab::*)(const PageHandle&) const;
  absl::StatusOr<PagePin> PinChecked(const PageHandle& handle, Check check);

  const PagePoolOptions options_;
  const SlabSource source_;
  const Clock& clock_;
  SlabNumbers own_numbers_;
  SlabNumbers& numbers_;

  mutable absl::Mutex mutex_;
  SlabSet slabs_ ABSL_GUARDED_BY(mutex_);
  bool ahead_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ahead_failed_ ABSL_GUARDED_BY(mutex_) = false;
  struct Held {
    PageHandle handle;
    SessionId owner;
  };
  std::multimap<absl::Time, Held> quarantine_ ABSL_GUARDED_BY(mutex_);
  // Bytes of pages that are not free, by tenant and together.
  std::map<std::string, size_t> tenant_bytes_ ABSL_GUARDED_BY(mutex_);
  size_t taken_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t pins_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_POOL_PAGE_POOL_H_
