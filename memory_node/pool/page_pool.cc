#include "memory_node/pool/page_pool.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"

namespace farkv {
namespace {

// How often one allocation makes a slab anew that others took meanwhile.
constexpr size_t kSpareTurns = 8;

}  // namespace

absl::Status PagePoolOptions::Validate() const {
  if (slab_bytes == 0 || slab_bytes % kPageAlignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slab of ", slab_bytes, " bytes is not a multiple of ",
                     kPageAlignment));
  }
  if (capacity_bytes < slab_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pool of ", capacity_bytes,
                     " bytes holds no slab; one has ", slab_bytes, " bytes"));
  }
  if (high_watermark <= 0 || high_watermark > 10000) {
    return absl::InvalidArgumentError(
        absl::StrCat("high watermark ", high_watermark,
                     " is not in 1..10000 ten-thousandths"));
  }
  return absl::OkStatus();
}

PagePin::~PagePin() {
  if (pool_ != nullptr) pool_->Unpin(handle_);
}

PagePool::PagePool(const PagePoolOptions& options, SlabSource source,
                   const Clock& clock, PagePool* sibling)
    : options_(options),
      source_(std::move(source)),
      clock_(clock),
      numbers_(sibling == nullptr ? own_numbers_ : sibling->numbers_),
      slabs_(options.slab_bytes, options.capacity_bytes, numbers_) {}

size_t PagePool::AllowedBytes() const {
  return slabs_.max_slabs() * slabs_.slab_bytes() *
         static_cast<size_t>(options_.high_watermark) / 10000;
}

bool PagePool::pressure() const {
  absl::MutexLock lock(&mutex_);
  return taken_bytes_ >= AllowedBytes();
}

absl::Status PagePool::CheckQuota(const std::string& tenant,
                                  size_t bytes) const {
  absl::MutexLock lock(&mutex_);
  return CheckQuotaLocked(tenant, bytes);
}

absl::Status PagePool::CheckQuotaLocked(const std::string& tenant,
                                        size_t bytes) const {
  const auto found = tenant_bytes_.find(tenant);
  const size_t held = found == tenant_bytes_.end() ? 0 : found->second;
  const size_t quota = options_.tenant_quota_bytes;
  if (quota == 0 || held + bytes <= quota) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("quota of tenant '", tenant, "': ", bytes, " bytes wanted, ",
                   held, " held, ", quota, " allowed"));
}

absl::Status PagePool::CheckBounds(const SlabClass& slab_class,
                                   size_t count) const {
  const size_t wanted = count * slab_class.stride;
  const size_t capacity = slabs_.max_slabs() * slabs_.slab_bytes();
  const size_t allowed = AllowedBytes();
  if (taken_bytes_ + wanted > allowed) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "pool above its high watermark: ", wanted, " bytes wanted, ",
        taken_bytes_, " taken, ", allowed, " allowed of ", capacity));
  }
  FARKV_RETURN_IF_ERROR(CheckQuotaLocked(slab_class.tenant, wanted));
  const size_t reachable = slabs_.ReachablePages(slab_class);
  if (count > reachable) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pool full: ", count, " pages of ", slab_class.stride,
                     " bytes wanted, ", reachable, " can be had in ",
                     slabs_.max_slabs(), " slabs"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PageHandle>> PagePool::Allocate(
    const std::string& tenant, size_t stride, size_t count) {
  if (stride == 0 || stride % kPageAlignment != 0 ||
      stride > options_.slab_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "page stride ", stride, " is not a multiple of ", kPageAlignment,
        " up to the slab's ", options_.slab_bytes, " bytes"));
  }
  const SlabClass slab_class{tenant, stride};
  const size_t needed = count / (options_.slab_bytes / stride) + 1;
  SlabMemory memory;  // made in the last turn
  for (size_t turn = 0; turn <= needed + kSpareTurns; ++turn) {
    {
      absl::MutexLock lock(&mutex_);
      // Added and taken from in one go, or another class could close it first.
      if (memory.size() > 0) slabs_.Add(slab_class, std::exchange(memory, {}));
      SweepLocked();
      FARKV_RETURN_IF_ERROR(CheckBounds(slab_class, count));
      while (slabs_.FreePages(slab_class) < count &&
             slabs_.AssignReady(slab_class)) {
      }
      if (slabs_.FreePages(slab_class) >= count) {
        return TakeLocked(slab_class, count);
      }
      if (turn == needed + kSpareTurns) break;
    }
    FARKV_ASSIGN_OR_RETURN(memory, MakeSlab(slab_class));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "pool busy: ", count, " pages of ", stride, " bytes wanted; ",
      needed + kSpareTurns, " slabs made for them went to other callers"));
}

std::vector<PageHandle> PagePool::TakeLocked(const SlabClass& slab_class,
                                             size_t count) {
  std::vector<PageHandle> pages;
  pages.reserve(count);
  while (pages.size() < count) pages.push_back(slabs_.Take(slab_class));
  const size_t bytes = count * slab_class.stride;
  if (bytes > 0) tenant_bytes_[slab_class.tenant] += bytes;
  taken_bytes_ += bytes;
  return pages;
}

absl::StatusOr<SlabMemory> PagePool::MakeSlab(const SlabClass& slab_class) {
  SlabSet::Reservation reservation;
  {
    absl::MutexLock lock(&mutex_);
    ahead_failed_ = false;
    // It may have become ready since the caller looked.
    if (!slabs_.ready().empty()) return SlabMemory();
    if (slabs_.ReadySoon()) {
      const auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !slabs_.ReadySoon();
      };
      mutex_.Await(absl::Condition(&settled));
      return SlabMemory();
    }
    reservation = slabs_.Reserve(slab_class);
    if (!reservation.reserved) {
      // Another caller took the last room; it may be, or have been, for us.
      const auto settled = [this, &slab_class]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                 return slabs_.FreePages(slab_class) > 0 ||
                                        slabs_.Booked(slab_class) == 0;
                               };
      if (!settled()) {
        mutex_.Await(absl::Condition(&settled));
        return SlabMemory();
      }
      if (slabs_.FreePages(slab_class) > 0) return SlabMemory();
      return absl::ResourceExhaustedError(absl::StrCat(
          "pool full: all ", slabs_.max_slabs(), " slabs are in use"));
    }
  }
  reservation.closed.reset();  // gives its memory back first
  absl::StatusOr<SlabMemory> memory = source_(options_.slab_bytes);
  if (memory.ok()) return memory;
  absl::MutexLock lock(&mutex_);
  slabs_.Abandon(slab_class);
  return memory;
}

absl::StatusOr<bool> PagePool::MakeAhead() {
  SlabSet::Reservation reservation;
  {
    absl::MutexLock lock(&mutex_);
    if (ahead_stopped_ || ahead_failed_) return false;
    reservation = slabs_.ReserveAhead();
    if (!reservation.reserved) return false;
  }
  reservation.closed.reset();  // gives its memory back first
  absl::StatusOr<SlabMemory> memory = source_(options_.slab_bytes);
  absl::MutexLock lock(&mutex_);
  if (memory.ok()) {
    slabs_.AddReady(*std::move(memory));
    return true;
  }
  slabs_.AbandonAhead();
  ahead_failed_ = true;
  return memory.status();
}

bool PagePool::WaitUntilWanted() {
  absl::MutexLock lock(&mutex_);
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ahead_stopped_ || (!ahead_failed_ && slabs_.WantsAhead());
  };
  mutex_.Await(absl::Condition(&wanted));
  return !ahead_stopped_;
}

void PagePool::StopMakingAhead() {
  absl::MutexLock lock(&mutex_);
  ahead_stopped_ = true;
}

void PagePool::NoteFreed(Slab& slab) {
  const SlabClass& slab_class = slab.slab_class();
  taken_bytes_ -= slab_class.stride;
  const auto tenant = tenant_bytes_.find(slab_class.tenant);
  tenant->second -= slab_class.stride;
  if (tenant->second == 0) tenant_bytes_.erase(tenant);
  slabs_.NoteFreed(slab);
}

absl::Status PagePool::Release(const PageHandle& handle) {
  absl::MutexLock lock(&mutex_);
  Slab* slab = slabs_.Find(handle.slab_id);
  if (slab == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("slab ", handle.slab_id, " has been closed"));
  }
  FARKV_RETURN_IF_ERROR(slab->CheckUsed(handle));
  if (slab->Release(handle.page)) NoteFreed(*slab);
  return absl::OkStatus();
}

absl::Status PagePool::Quarantine(const PageHandle& handle, absl::Time until,
                                  const SessionId& owner) {
  absl::MutexLock lock(&mutex_);
  Slab* slab = slabs_.Find(handle.slab_id);
  if (slab == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("slab ", handle.slab_id, " has been closed"));
  }
  FARKV_RETURN_IF_ERROR(slab->CheckUsed(handle));
  slab->Quarantine(handle.page);
  quarantine_.emplace(until, Held{handle, owner});
  return absl::OkStatus();
}

absl::StatusOr<PagePin> PagePool::Pin(const PageHandle& handle) {
  return PinChecked(handle, &Slab::CheckUsed);
}

absl::StatusOr<PagePin> PagePool::PinQuarantined(const PageHandle& handle) {
  return PinChecked(handle, &Slab::CheckQuarantined);
}

absl::StatusOr<PagePin> PagePool::PinChecked(const PageHandle& handle,
                                             Check check) {
  absl::MutexLock lock(&mutex_);
  Slab* slab = slabs_.Find(handle.slab_id);
  if (slab == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("slab ", handle.slab_id, " has been closed"));
  }
  FARKV_RETURN_IF_ERROR((slab->*check)(handle));
  slab->Pin(handle.page);
  ++pins_;
  return PagePin(this, handle);
}

void PagePool::EndQuarantine(const PageHandle& handle, absl::Time until) {
  absl::MutexLock lock(&mutex_);
  const auto [first, last] = quarantine_.equal_range(until);
  for (auto it = first; it != last; ++it) {
    if (it->second.handle != handle) continue;
    // A slab with a page in quarantine is never empty, so it is still there.
    Slab* slab = slabs_.Find(handle.slab_id);
    if (slab->Restore(handle.page)) NoteFreed(*slab);
    quarantine_.erase(it);
    return;
  }
}

void PagePool::Unpin(const PageHandle& handle) {
  absl::MutexLock lock(&mutex_);
  // A slab with a pinned page is never empty, so it is still there.
  Slab* slab = slabs_.Find(handle.slab_id);
  --pins_;
  if (slab->Unpin(handle.page)) NoteFreed(*slab);
}

absl::Time PagePool::Sweep() {
  absl::MutexLock lock(&mutex_);
  return SweepLocked();
}

absl::Time PagePool::SweepLocked() {
  const absl::Time now = clock_.Now();
  while (!quarantine_.empty()) {
    const auto first = quarantine_.begin();
    if (first->first > now) return first->first;
    const PageHandle& handle = first->second.handle;
    Slab* slab = slabs_.Find(handle.slab_id);
    if (slab->Restore(handle.page)) NoteFreed(*slab);
    quarantine_.erase(first);
  }
  return absl::InfiniteFuture();
}

absl::StatusOr<PagePool::SharedSlab> PagePool::Share(const std::string& tenant,
                                                     uint32_t slab_id) const {
  absl::MutexLock lock(&mutex_);
  const Slab* slab = slabs_.Find(slab_id);
  if (slab == nullptr) {
    return absl::NotFoundError(absl::StrCat("no slab ", slab_id));
  }
  if (slab->slab_class().tenant != tenant) {
    return absl::PermissionDeniedError(
        absl::StrCat("slab ", slab_id, " is not of tenant '", tenant, "'"));
  }
  SharedSlab shared;
  shared.bytes = slab->memory().size();
  FARKV_ASSIGN_OR_RETURN(shared.descriptor,
                         slab->memory().DuplicateDescriptor());
  return shared;
}

uint32_t PagePool::pins(const PageHandle& handle) const {
  absl::MutexLock lock(&mutex_);
  const Slab* slab = slabs_.Find(handle.slab_id);
  return slab == nullptr ? 0 : slab->pins(handle.page);
}

std::vector<QuarantinedPage> PagePool::Quarantined(
    Generation after, size_t count,
    const std::optional<SessionPattern>& owners) const {
  absl::MutexLock lock(&mutex_);
  std::vector<const std::pair<const absl::Time, Held>*> found;
  for (const auto& entry : quarantine_) {
    const Held& held = entry.second;
    if (held.handle.generation.value <= after.value) continue;
    if (!owners || owners->Matches(held.owner)) found.push_back(&entry);
  }
  const size_t shown = std::min(count, found.size());
  std::partial_sort(found.begin(),
                    found.begin() + static_cast<ptrdiff_t>(shown), found.end(),
                    [](const auto* a, const auto* b) {
                      return a->second.handle.generation.value <
                             b->second.handle.generation.value;
                    });
  std::vector<QuarantinedPage> pages;
  for (size_t i = 0; i < shown; ++i) {
    const auto& [until, held] = *found[i];
    const Slab* slab = slabs_.Find(held.handle.slab_id);
    pages.push_back({held.handle, slab->slab_class().tenant,
                     slab->slab_class().stride, held.owner, until,
                     slab->pins(held.handle.page)});
  }
  return pages;
}

PagePoolStats PagePool::stats() const {
  absl::MutexLock lock(&mutex_);
  PagePoolStats stats;
  stats.capacity_bytes = slabs_.max_slabs() * slabs_.slab_bytes();
  stats.slabs = slabs_.num_slabs() + slabs_.ready().size();
  stats.slab_bytes = stats.slabs * slabs_.slab_bytes();
  stats.ready_bytes = slabs_.ready().size() * slabs_.slab_bytes();
  stats.huge_pages = stats.slabs > 0;
  for (const SlabMemory& memory : slabs_.ready()) {
    stats.huge_pages = stats.huge_pages && memory.huge_pages();
  }
  slabs_.ForEach([&stats](const Slab& slab) {
    const size_t stride = slab.slab_class().stride;
    const size_t used =
        slab.num_pages() - slab.num_free() - slab.num_quarantined();
    stats.used_pages += used;
    stats.used_bytes += used * stride;
    stats.quarantined_pages += slab.num_quarantined();
    stats.quarantined_bytes += slab.num_quarantined() * stride;
    stats.free_pages += slab.num_free();
    if (!slab.empty()) {
      stats.stranded_bytes +=
          slab.memory().size() - (slab.num_pages() - slab.num_free()) * stride;
    }
    stats.huge_pages = stats.huge_pages && slab.memory().huge_pages();
  });
  stats.pins = pins_;
  stats.pressure = taken_bytes_ >= AllowedBytes();
  return stats;
}

}  // namespace farkv
