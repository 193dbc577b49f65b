// Pages of a session for decisions that are made where the rows lie.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/directory.h"

namespace farkv {
namespace {

// Pages looked up under one hold of the lock, as many as a plan may name.
constexpr size_t kMaxAtOnce = 4096;

absl::Status CheckHead(const RowsWanted& item, const KvGeometry& geometry) {
  if (item.page.layer >= 0 && item.page.layer < geometry.num_layers &&
      item.kv_head >= 0 && item.kv_head < geometry.num_kv_heads) {
    return absl::OkStatus();
  }
  return WithReason(absl::InvalidArgumentError(absl::StrCat(
                        "layer ", item.page.layer, ", head ", item.kv_head,
                        " of a session with ", geometry.num_layers,
                        " layers and ", geometry.num_kv_heads, " KV heads")),
                    ErrorReason::kInvalidField);
}

// `missing` is not 0.
absl::Status NotStored(const RowsWanted& item, uint64_t missing,
                       const char* why) {
  const int64_t position =
      int64_t{item.page.page_index} * kPageTokens + std::countr_zero(missing);
  return WithReason(absl::NotFoundError(absl::StrCat(
                        "layer ", item.page.layer, ", head ", item.kv_head,
                        ": position ", position, " is not stored here: ", why)),
                    ErrorReason::kNotFound);
}

absl::Status CheckRowsStored(const RowsWanted& item, const PageEntry* entry) {
  if (item.rows == 0) return absl::OkStatus();
  if (entry == nullptr) {
    return NotStored(item, item.rows, "its page is not reserved");
  }
  if (!entry->stored) {
    return NotStored(item, item.rows, "its page is reserved, not stored");
  }
  const uint64_t missing =
      item.rows & ~entry->stored_rows[static_cast<size_t>(item.kv_head)];
  if (missing == 0) return absl::OkStatus();
  return NotStored(item, missing, "its page has no such row");
}

}  // namespace

absl::StatusOr<Session*> Directory::FindRunning(const SessionId& id,
                                                Epoch epoch) const {
  FARKV_RETURN_IF_ERROR(CheckEpoch(epoch));
  Session* session = Find(id);
  if (session == nullptr) return Unknown(id);
  if (!Expired(*session)) return session;
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("the lease of session ", SessionHandle(id),
                                     " ran "
                                     "out")),
                    ErrorReason::kLeaseExpired);
}

absl::Status Directory::PinForRead(const Session& session,
                                   std::span<const RowsWanted> wanted,
                                   ReadTicket& ticket) const {
  for (const RowsWanted& item : wanted) {
    FARKV_RETURN_IF_ERROR(CheckHead(item, session.geometry));
    const auto found = session.pages.find(item.page);
    const bool known = found != session.pages.end();
    FARKV_RETURN_IF_ERROR(
        CheckRowsStored(item, known ? &found->second : nullptr));
    const bool pinned =
        !ticket.pages.empty() && ticket.pages.back().page == item.page;
    if (pinned || item.rows == 0) continue;
    const PageEntry& entry = found->second;
    PageRead& page = ticket.pages.emplace_back();
    page.page = item.page;
    page.tier = entry.tier;
    page.t2_bits = entry.t2_bits;
    FARKV_ASSIGN_OR_RETURN(page.pin, PoolOf(entry).Pin(entry.handle));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReadTicket> Directory::BeginRead(
    const SessionId& id, Epoch epoch, std::span<const RowsWanted> wanted) {
  ReadTicket ticket;
  ticket.session = id;
  ticket.epoch = epoch;
  // What changes between two parts is found by CheckRead.
  do {
    const auto part = wanted.first(std::min(wanted.size(), kMaxAtOnce));
    wanted = wanted.subspan(part.size());
    absl::MutexLock lock(&mutex_);
    FARKV_ASSIGN_OR_RETURN(const Session* session, FindRunning(id, epoch));
    ticket.instance = session->instance;
    ticket.geometry = session->geometry;
    FARKV_RETURN_IF_ERROR(PinForRead(*session, part, ticket));
  } while (!wanted.empty());
  return ticket;
}

absl::Status Directory::CheckRead(const ReadTicket& ticket) const {
  std::span<const PageRead> pages = ticket.pages;
  do {
    const auto part = pages.first(std::min(pages.size(), kMaxAtOnce));
    pages = pages.subspan(part.size());
    absl::MutexLock lock(&mutex_);
    FARKV_RETURN_IF_ERROR(CheckPagesRead(ticket, part));
  } while (!pages.empty());
  return absl::OkStatus();
}

absl::Status Directory::CheckPagesRead(const ReadTicket& ticket,
                                       std::span<const PageRead> pages) const {
  FARKV_ASSIGN_OR_RETURN(const Session* session,
                         FindRunning(ticket.session, ticket.epoch));
  if (session->instance != ticket.instance) return Unknown(ticket.session);
  for (const PageRead& read : pages) {
    const auto found = session->pages.find(read.page);
    if (found != session->pages.end() &&
        found->second.handle == read.pin.handle()) {
      continue;
    }
    return absl::AbortedError(absl::StrCat(
        "layer ", read.page.layer, ", page ", read.page.page_index,
        " moved or was freed while it was read: nothing was decided"));
  }
  return absl::OkStatus();
}

}  // namespace farkv
