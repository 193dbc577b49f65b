// The tier changes of ApplyTierPlan: stored T1 pages become T2 pages. DESIGN 6
// "Compress" and 13: a new page is written, the old one goes to quarantine.
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/page/page_format.h"
#include "memory_node/directory/directory.h"
#include "memory_node/directory/plan_parts.h"

namespace farkv {
namespace {

absl::Status CheckChange(const TierChange& change, const KvGeometry& geometry) {
  if (change.tier != Tier::kT2) {
    return InvalidPlan(absl::StrCat(PageText(change.page), ": a change to T",
                                    static_cast<int>(change.tier),
                                    "; a node changes pages to T2 only"));
  }
  if (change.t2_bits != 8 && change.t2_bits != 4) {
    return InvalidPlan(absl::StrCat(PageText(change.page), ": T2 bits are ",
                                    change.t2_bits, ", must be 8 or 4"));
  }
  const auto heads = static_cast<size_t>(geometry.num_kv_heads);
  if (!change.exceptions.empty() && change.exceptions.size() != heads) {
    return InvalidPlan(absl::StrCat(PageText(change.page), ": ",
                                    change.exceptions.size(), " bitmaps for ",
                                    heads, " KV heads"));
  }
  for (size_t head = 0; head < change.exceptions.size(); ++head) {
    if (std::popcount(change.exceptions[head]) <= kT2ExceptionSlots) continue;
    return InvalidPlan(
        absl::StrCat(PageText(change.page), ", head ", head, ": ",
                     std::popcount(change.exceptions[head]),
                     " exceptions, at most ", kT2ExceptionSlots));
  }
  return absl::OkStatus();
}

std::vector<uint64_t> LiveBitmaps(const PageHandle& page,
                                  const KvGeometry& geometry) {
  const PageHeader header(page.data, geometry);
  std::vector<uint64_t> live;
  for (int head = 0; head < geometry.num_kv_heads; ++head) {
    live.push_back(header.live(head));
  }
  return live;
}

}  // namespace

absl::StatusOr<PageEntry*> Directory::FindToCompress(
    Session& session, const TierChange& change) const {
  if (absl::Status s = CheckChange(change, session.geometry); !s.ok()) return s;
  const auto found = session.pages.find(change.page);
  if (found == session.pages.end() || !found->second.stored) {
    return NotStored(change.page);
  }
  PageEntry& entry = found->second;
  if (entry.tier == Tier::kT2) {
    if (entry.t2_bits == change.t2_bits) return &entry;
    return absl::FailedPreconditionError(absl::StrCat(
        PageText(change.page), " is T2 of ", entry.t2_bits, " bits, not ",
        change.t2_bits, ": a page is quantised once"));
  }
  if (entry.compressing) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            PageText(change.page), " changes its tier twice in one call")),
        ErrorReason::kDuplicate);
  }
  if (entry.storing) {
    return absl::AbortedError(absl::StrCat(PageText(change.page),
                                           ": a store of the page is running"));
  }
  if (t2_.pool == nullptr) {
    return WithReason(
        absl::ResourceExhaustedError("this node has no T2 pool (--t2-bytes)"),
        ErrorReason::kPoolFull);
  }
  return &entry;
}

void Directory::BeginCompressions(Session& session, const TierPlanCall& call,
                                  PlanWork& work) {
  for (size_t i = 0; i < call.tier_changes.size(); ++i) {
    const TierChange& change = call.tier_changes[i];
    PagePlacement& moved = work.moved.emplace_back();
    moved.page = change.page;
    const absl::StatusOr<PageEntry*> entry = FindToCompress(session, change);
    if (!entry.ok()) {
      moved.status = entry.status();
      continue;
    }
    if ((*entry)->tier == Tier::kT2) {
      moved = PlacementOf(change.page, **entry);
      continue;
    }
    absl::StatusOr<PagePin> pin = pool_.Pin((*entry)->handle);
    moved.status = pin.status();
    if (!pin.ok()) continue;
    (*entry)->compressing = true;
    Compression& compression = work.compressions.emplace_back();
    compression.index = i;
    compression.from = *std::move(pin);
  }
}

void Directory::RunCompressions(const TierPlanCall& call,
                                PlanWork& work) const {
  for (Compression& compression : work.compressions) {
    compression.to =
        Compress(call.session, call.tier_changes[compression.index], work,
                 compression.from.data());
  }
}

absl::StatusOr<PageHandle> Directory::Compress(const SessionId& session,
                                               const TierChange& change,
                                               const PlanWork& work,
                                               std::byte* from) const {
  const PageLayout layout = PageLayout::T2(work.geometry, change.t2_bits);
  const absl::StatusOr<std::vector<PageHandle>> pages =
      t2_.pool->Allocate(work.tenant, layout.stride, 1);
  if (!pages.ok()) {
    const bool quota = !t2_.pool->CheckQuota(work.tenant, layout.stride).ok();
    return WithRetryAfter(
        WithReason(pages.status(), quota ? ErrorReason::kQuotaExceeded
                                         : ErrorReason::kPoolFull),
        options_.retry_after);
  }
  const PageHandle page = pages->front();
  PageHeader(page.data, work.geometry)
      .Format({.session = session,
               .layer = change.page.layer,
               .page_index = change.page.page_index,
               .generation = page.generation,
               .tier = Tier::kT2,
               .t2_bits = change.t2_bits},
              work.geometry);
  std::vector<uint64_t> kept = change.exceptions;
  kept.resize(static_cast<size_t>(work.geometry.num_kv_heads), 0);
  absl::Status status =
      t2_.compress(work.geometry, change.t2_bits, kept, from, page.data);
  if (status.ok()) return page;
  t2_.pool->Release(page).IgnoreError();  // nobody has heard of it
  return absl::Status(status.code(), absl::StrCat(PageText(change.page), ": ",
                                                  status.message()));
}

void Directory::FinishCompressions(Session& session, const TierPlanCall& call,
                                   PlanWork& work) {
  // A mapped reader may go on with the T1 page under the lease it has.
  const absl::Time until = clock_.Now() + session.lease;
  for (Compression& compression : work.compressions) {
    const TierChange& change = call.tier_changes[compression.index];
    // Only plans take pages away, and this session's only one is this.
    PageEntry& entry = session.pages.at(change.page);
    entry.compressing = false;
    PagePlacement& moved = work.moved[compression.index];
    moved.status = compression.to.status();
    if (!compression.to.ok()) continue;
    // Ours, so it is used.
    pool_.Quarantine(entry.handle, until, session.id).IgnoreError();
    entry.previous = std::make_unique<PreviousPage>(
        PreviousPage{entry.handle, until, std::move(entry.stored_rows)});
    entry.handle = *compression.to;
    entry.since = clock_.Now();
    entry.tier = Tier::kT2;
    entry.t2_bits = change.t2_bits;
    entry.stored_rows = LiveBitmaps(entry.handle, session.geometry);
    ++compressed_total_;
    ++session.t2_pages;
    session.t2_bytes += PageLayout::T2(session.geometry, change.t2_bits).stride;
    for (uint64_t bitmap : entry.stored_rows) {
      session.t2_live_rows += static_cast<uint64_t>(std::popcount(bitmap));
    }
    moved = PlacementOf(change.page, entry);
  }
}

}  // namespace farkv
