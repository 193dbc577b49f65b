// ApplyTierPlan: reservations, evictions, frees; directory_compress.cc has the
// tier changes.
#include <bit>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/directory.h"
#include "memory_node/directory/plan_parts.h"

namespace farkv {
namespace {

absl::Status CheckName(const PageName& page, const KvGeometry& geometry) {
  if (page.layer < 0 || page.layer >= geometry.num_layers ||
      page.page_index < 0 ||
      page.page_index >= static_cast<int32_t>(kMaxSequencePages)) {
    return InvalidPlan(absl::StrCat(PageText(page), " is outside ",
                                    geometry.num_layers, " layers and ",
                                    kMaxSequencePages, " pages"));
  }
  return absl::OkStatus();
}

// Names in range and none twice.
absl::Status CheckReservation(const TierPlanCall& call,
                              const KvGeometry& geometry) {
  absl::flat_hash_set<PageName> seen;
  for (const PageName& page : call.reserve) {
    FARKV_RETURN_IF_ERROR(CheckName(page, geometry));
    if (seen.insert(page).second) continue;
    return WithReason(absl::InvalidArgumentError(absl::StrCat(
                          PageText(page), " is reserved twice in one call")),
                      ErrorReason::kDuplicate);
  }
  return absl::OkStatus();
}

}  // namespace

// A plan that compresses runs for seconds, and those who wait for it would hold
// the threads of every other session's plans. The caller repeats its call: it
// then gets its turn, or the reply if it was the same call.
absl::Status Directory::CheckNoPlanRuns(const Session& session) {
  if (!session.plan_running) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "another plan of session ", SessionHandle(session.id), " is running"));
}

absl::StatusOr<Directory::PlanWork> Directory::BeginPlan(
    const TierPlanCall& call) {
  ExpireSessions();
  Session* session = Find(call.session);
  if (session == nullptr) return Unknown(call.session);
  FARKV_RETURN_IF_ERROR(CheckNoPlanRuns(*session));
  PlanWork work;
  FARKV_ASSIGN_OR_RETURN(work.kept,
                         session->replies.Find(call.sequence_number));
  if (work.kept != nullptr) return work;
  FARKV_RETURN_IF_ERROR(CheckReservation(call, session->geometry));
  for (const PageName& page : call.reserve) {
    if (!session->pages.contains(page)) work.missing.push_back(page);
  }
  work.instance = session->instance;
  work.tenant = session->tenant;
  work.stride = session->stride;
  work.geometry = session->geometry;
  session->plan_running = true;
  BeginCompressions(*session, call, work);
  return work;
}

absl::StatusOr<std::vector<PageHandle>> Directory::MakePages(
    const SessionId& session, const PlanWork& work) const {
  const size_t count = work.missing.size();
  absl::StatusOr<std::vector<PageHandle>> pages =
      pool_.Allocate(work.tenant, work.stride, count);
  if (!pages.ok()) {
    const bool quota = !pool_.CheckQuota(work.tenant, count * work.stride).ok();
    return WithRetryAfter(
        WithReason(pages.status(), quota ? ErrorReason::kQuotaExceeded
                                         : ErrorReason::kPoolFull),
        options_.retry_after);
  }
  for (size_t i = 0; i < count; ++i) {
    const PageHandle& page = (*pages)[i];
    PageHeader(page.data, work.geometry)
        .Format({.session = session,
                 .layer = work.missing[i].layer,
                 .page_index = work.missing[i].page_index,
                 .generation = page.generation},
                work.geometry);
  }
  return pages;
}

absl::StatusOr<TierPlanResult> Directory::FinishPlan(
    const TierPlanCall& call, PlanWork& work,
    const absl::StatusOr<std::vector<PageHandle>>& pages) {
  ExpireSessions();
  Session* session = Find(call.session);
  if (session == nullptr || session->instance != work.instance) {
    DropPages(work, pages);
    return Unknown(call.session);
  }
  session->plan_running = false;
  FinishCompressions(*session, call, work);
  FARKV_RETURN_IF_ERROR(pages.status());
  for (size_t i = 0; i < work.missing.size(); ++i) {
    PageEntry& entry = session->pages[work.missing[i]];
    entry.handle = (*pages)[i];
    entry.since = clock_.Now();
  }
  TierPlanResult result = ApplyLocked(*session, call, std::move(work.moved));
  session->replies.Add(call.sequence_number, result);
  return result;
}

absl::StatusOr<TierPlanResult> Directory::Apply(const TierPlanCall& call) {
  FARKV_RETURN_IF_ERROR(CheckEpoch(call.epoch));
  PlanWork work;
  {
    absl::MutexLock lock(&mutex_);
    FARKV_ASSIGN_OR_RETURN(work, BeginPlan(call));
    if (work.kept != nullptr) return *work.kept;
  }
  const absl::StatusOr<std::vector<PageHandle>> pages =
      MakePages(call.session, work);
  if (pages.ok()) RunCompressions(call, work);
  absl::MutexLock lock(&mutex_);
  return FinishPlan(call, work, pages);
}

TierPlanResult Directory::ApplyLocked(Session& session,
                                      const TierPlanCall& call,
                                      std::vector<PagePlacement> moved) {
  TierPlanResult result;
  result.moved = std::move(moved);
  for (const PageName& page : call.reserve) {
    result.reserved.push_back(PlacementOf(page, session.pages.at(page)));
  }
  for (const PageEviction& eviction : call.evictions) {
    result.evictions.push_back(Evict(session, eviction, result.freed_pages));
  }
  for (const PageName& page : call.free) {
    if (Free(session, page)) ++result.freed_pages;
  }
  result.pressure = pool_.pressure();
  result.draining = draining_;
  return result;
}

absl::Status Directory::Evict(Session& session, const PageEviction& eviction,
                              uint64_t& freed) {
  const auto heads = static_cast<size_t>(session.geometry.num_kv_heads);
  if (eviction.live.size() != heads) {
    return InvalidPlan(absl::StrCat(PageText(eviction.page), ": ",
                                    eviction.live.size(), " bitmaps for ",
                                    heads, " KV heads"));
  }
  const auto found = session.pages.find(eviction.page);
  if (found == session.pages.end() || !found->second.stored) {
    return NotStored(eviction.page);
  }
  PageHeader header(found->second.handle.data, session.geometry);
  uint64_t left = 0;
  for (size_t head = 0; head < heads; ++head) {
    const uint64_t live = header.live(static_cast<int>(head));
    if ((eviction.live[head] & ~live) != 0) {
      return InvalidPlan(absl::StrCat(PageText(eviction.page), ", head ", head,
                                      ": live rows 0x",
                                      absl::Hex(eviction.live[head]),
                                      " are not among 0x", absl::Hex(live)));
    }
    left |= eviction.live[head];
  }
  CountLiveRows(session, found->second, false);
  for (size_t head = 0; head < heads; ++head) {
    header.set_live(static_cast<int>(head), eviction.live[head]);
  }
  CountLiveRows(session, found->second, true);
  if (left == 0 && Free(session, eviction.page)) ++freed;
  return absl::OkStatus();
}

bool Directory::Free(Session& session, const PageName& page) {
  const auto found = session.pages.find(page);
  if (found == session.pages.end()) return false;
  const PageEntry& entry = found->second;
  if (entry.stored) {
    --session.stored_pages;
    CountLiveRows(session, entry, false);
  }
  if (entry.tier == Tier::kT2) {
    --session.t2_pages;
    session.t2_bytes -= PageLayout::T2(session.geometry, entry.t2_bits).stride;
  }
  ReleaseMemory(entry);
  session.pages.erase(found);
  return true;
}

void Directory::ReleaseMemory(const PageEntry& entry) const {
  PoolOf(entry).Release(entry.handle).IgnoreError();  // ours, so it is used
  if (entry.previous == nullptr) return;
  pool_.EndQuarantine(entry.previous->handle, entry.previous->until);
}

void Directory::CountLiveRows(Session& session, const PageEntry& entry,
                              bool add) {
  const PageHeader header(entry.handle.data, session.geometry);
  uint64_t rows = 0;
  for (int head = 0; head < session.geometry.num_kv_heads; ++head) {
    rows += static_cast<uint64_t>(std::popcount(header.live(head)));
  }
  const bool t2 = entry.tier == Tier::kT2;
  session.live_rows = add ? session.live_rows + rows : session.live_rows - rows;
  if (!t2) return;
  session.t2_live_rows =
      add ? session.t2_live_rows + rows : session.t2_live_rows - rows;
}

void Directory::DropPages(
    const PlanWork& work,
    const absl::StatusOr<std::vector<PageHandle>>& pages) const {
  for (const Compression& compression : work.compressions) {
    if (compression.to.ok()) t2_.pool->Release(*compression.to).IgnoreError();
  }
  if (!pages.ok()) return;
  for (const PageHandle& page : *pages) pool_.Release(page).IgnoreError();
}

}  // namespace farkv
