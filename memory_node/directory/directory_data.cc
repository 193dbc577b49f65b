// What stands between the data plane and the pages.
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/directory.h"

namespace farkv {
namespace {

absl::Status NoSuchPage(const PageName& page) {
  return WithReason(
      absl::NotFoundError(absl::StrCat("layer ", page.layer, ", page ",
                                       page.page_index, " is not reserved")),
      ErrorReason::kNotFound);
}

absl::Status CheckGeneration(const PageName& page, Generation wanted,
                             Generation held) {
  if (wanted == held) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(
          absl::StrCat("layer ", page.layer, ", page ", page.page_index,
                       " has generation ", held.value, ", not ", wanted.value)),
      ErrorReason::kStaleGeneration);
}

absl::Status CheckStored(const PageName& page, const PageEntry& entry) {
  if (entry.stored) return absl::OkStatus();
  return WithReason(absl::NotFoundError(absl::StrCat(
                        "layer ", page.layer, ", page ", page.page_index,
                        " is reserved, not stored")),
                    ErrorReason::kNotFound);
}

absl::Status CheckTier(const PageWanted& wanted, Tier tier, int t2_bits) {
  if (wanted.tier == tier && wanted.t2_bits == t2_bits) {
    return absl::OkStatus();
  }
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "page ", wanted.page_index, " is asked for as tier ",
          static_cast<int>(wanted.tier), " of ", wanted.t2_bits,
          " T2 bits, it is tier ", static_cast<int>(tier), " of ", t2_bits)),
      ErrorReason::kStaleGeneration);
}

absl::Status CheckRows(const PageName& page, std::span<const uint64_t> stored,
                       std::span<const uint64_t> rows) {
  if (rows.size() != stored.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.size(), " bitmaps for ", stored.size(), " KV heads"));
  }
  for (size_t head = 0; head < rows.size(); ++head) {
    if ((rows[head] & ~stored[head]) == 0) continue;
    return WithReason(
        absl::NotFoundError(absl::StrCat(
            "layer ", page.layer, ", page ", page.page_index, ", head ", head,
            ": rows 0x", absl::Hex(rows[head]), " are not among the stored 0x",
            absl::Hex(stored[head]))),
        ErrorReason::kNotFound);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenOwner> Directory::RedeemToken(const std::string& token) {
  absl::MutexLock lock(&mutex_);
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) {
    return absl::PermissionDeniedError("unknown token: open a session first");
  }
  if (std::exchange(found->second.used, true)) {
    return absl::PermissionDeniedError(
        "token used before: open the session again for a new one");
  }
  return found->second.owner;
}

absl::StatusOr<TokenOwner> Directory::CheckToken(const SessionId& session,
                                                 const std::string& token) {
  absl::MutexLock lock(&mutex_);
  Session* found = Find(session);
  if (found == nullptr || found->token != token || Expired(*found)) {
    return absl::PermissionDeniedError(
        absl::StrCat("not the token of session ", SessionHandle(session)));
  }
  found->mapped = true;
  return TokenOwner{found->tenant, found->worker_id, found->data_timeout, true};
}

absl::StatusOr<Session*> Directory::FindForData(
    const DataCaller& caller) const {
  FARKV_RETURN_IF_ERROR(CheckEpoch(caller.epoch));
  Session* session = Find(caller.session);
  if (session == nullptr) return Unknown(caller.session);
  if (session->tenant != caller.tenant) {
    return absl::PermissionDeniedError(absl::StrCat(
        "session ", SessionHandle(caller.session), " is another tenant's"));
  }
  if (Expired(*session)) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "the lease of session ",
                          SessionHandle(caller.session), " ran out")),
                      ErrorReason::kLeaseExpired);
  }
  return session;
}

absl::StatusOr<CalledSession> Directory::CheckCaller(
    const DataCaller& caller) const {
  absl::MutexLock lock(&mutex_);
  FARKV_ASSIGN_OR_RETURN(const Session* session, FindForData(caller));
  return CalledSession{session->geometry, session->instance};
}

absl::StatusOr<StoreTicket> Directory::BeginStore(const DataCaller& caller,
                                                  const PageName& page,
                                                  Generation generation) {
  absl::MutexLock lock(&mutex_);
  FARKV_ASSIGN_OR_RETURN(Session * session, FindForData(caller));
  const auto found = session->pages.find(page);
  if (found == session->pages.end()) return NoSuchPage(page);
  PageEntry& entry = found->second;
  FARKV_RETURN_IF_ERROR(
      CheckGeneration(page, generation, entry.handle.generation));
  if (entry.tier != Tier::kT1) {
    return absl::FailedPreconditionError(
        absl::StrCat("layer ", page.layer, ", page ", page.page_index,
                     " is T2: rows are stored as T1"));
  }
  if (entry.storing || entry.compressing) {
    return absl::AbortedError(absl::StrCat(
        "layer ", page.layer, ", page ", page.page_index, ": another ",
        entry.storing ? "store" : "tier change", " of the page is running"));
  }
  FARKV_ASSIGN_OR_RETURN(PagePin pin, pool_.Pin(entry.handle));
  entry.storing = true;
  StoreTicket ticket;
  ticket.session = caller.session;
  ticket.instance = session->instance;
  ticket.page = page;
  ticket.geometry = session->geometry;
  ticket.was_stored = entry.stored;
  ticket.pin = std::move(pin);
  return ticket;
}

absl::Status Directory::FinishStore(StoreTicket ticket,
                                    std::span<const uint64_t> rows) {
  absl::MutexLock lock(&mutex_);
  Session* session = Find(ticket.session);
  if (session == nullptr || session->instance != ticket.instance) {
    return Unknown(ticket.session);
  }
  const auto found = session->pages.find(ticket.page);
  if (found == session->pages.end()) return NoSuchPage(ticket.page);
  PageEntry& entry = found->second;
  if (entry.handle != ticket.pin.handle()) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "layer ", ticket.page.layer, ", page ", ticket.page.page_index,
            " was freed and reserved again meanwhile")),
        ErrorReason::kStaleGeneration);
  }
  entry.storing = false;
  if (rows.empty() || entry.stored) return absl::OkStatus();
  entry.stored = true;
  entry.since = clock_.Now();
  entry.stored_rows.assign(rows.begin(), rows.end());
  ++session->stored_pages;
  for (uint64_t bitmap : rows) {
    session->live_rows += static_cast<uint64_t>(std::popcount(bitmap));
  }
  return absl::OkStatus();
}

std::vector<absl::StatusOr<PagePin>> Directory::BeginFetch(
    const DataCaller& caller, int32_t layer,
    std::span<const PageWanted> wanted) {
  std::vector<absl::StatusOr<PagePin>> pins;
  pins.reserve(wanted.size());
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<Session*> session = FindForData(caller);
  for (const PageWanted& item : wanted) {
    if (!session.ok()) {
      pins.emplace_back(session.status());
      continue;
    }
    const PageName page{layer, item.page_index};
    const auto found = (*session)->pages.find(page);
    if (found == (*session)->pages.end()) {
      pins.emplace_back(NoSuchPage(page));
      continue;
    }
    pins.push_back(PinWanted(page, found->second, item));
  }
  return pins;
}

absl::StatusOr<PagePin> Directory::PinWanted(const PageName& page,
                                             const PageEntry& entry,
                                             const PageWanted& wanted) const {
  const PreviousPage* previous = entry.previous.get();
  if (previous != nullptr && wanted.generation == previous->handle.generation &&
      clock_.Now() < previous->until) {
    FARKV_RETURN_IF_ERROR(CheckTier(wanted, Tier::kT1, 0));
    FARKV_RETURN_IF_ERROR(CheckRows(page, previous->stored_rows, wanted.rows));
    return pool_.PinQuarantined(previous->handle);
  }
  FARKV_RETURN_IF_ERROR(
      CheckGeneration(page, wanted.generation, entry.handle.generation));
  FARKV_RETURN_IF_ERROR(CheckStored(page, entry));
  FARKV_RETURN_IF_ERROR(CheckTier(wanted, entry.tier, entry.t2_bits));
  FARKV_RETURN_IF_ERROR(CheckRows(page, entry.stored_rows, wanted.rows));
  return PoolOf(entry).Pin(entry.handle);
}

}  // namespace farkv
