// Snapshots for operators, and the scrubber's way to a page.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/rpc/error_reason.h"
#include "memory_node/directory/directory.h"

namespace farkv {
namespace {

SessionReport ReportOf(const Session& session, absl::Time now) {
  SessionReport report;
  report.id = session.id;
  report.tenant = session.tenant;
  report.worker_id = session.worker_id;
  report.geometry = session.geometry;
  report.lease_remaining =
      std::max(session.lease_end - now, absl::ZeroDuration());
  report.age = now - session.opened;
  report.pages = session.pages.size();
  report.stored_pages = session.stored_pages;
  report.bytes = (session.pages.size() - session.t2_pages) * session.stride +
                 session.t2_bytes;
  report.live_rows = session.live_rows;
  report.t2_pages = session.t2_pages;
  report.t2_bytes = session.t2_bytes;
  report.mapped = session.mapped;
  return report;
}

PageReport ReportOf(const PageName& name, const PageEntry& entry,
                    const KvGeometry& geometry) {
  PageReport report;
  report.page = name;
  report.stored = entry.stored;
  report.tier = entry.tier;
  report.t2_bits = entry.t2_bits;
  report.generation = entry.handle.generation;
  report.live.resize(static_cast<size_t>(geometry.num_kv_heads));
  if (!entry.stored) return report;
  const PageHeader header(entry.handle.data, geometry);
  for (size_t head = 0; head < report.live.size(); ++head) {
    report.live[head] = header.live(static_cast<int>(head));
  }
  return report;
}

}  // namespace

Directory::Summary Directory::summary() const {
  absl::MutexLock lock(&mutex_);
  return {sessions_.size(), draining_};
}

DirectoryStats Directory::stats() const {
  absl::MutexLock lock(&mutex_);
  DirectoryStats stats;
  stats.sessions = sessions_.size();
  for (const auto& [id, session] : sessions_) {
    stats.stored_pages += session->stored_pages;
    stats.live_rows += session->live_rows;
    stats.t2_pages += session->t2_pages;
    stats.t2_live_rows += session->t2_live_rows;
    stats.reserved_pages += session->pages.size() - session->stored_pages;
  }
  stats.expired_sessions = expired_total_;
  stats.compressed_pages = compressed_total_;
  stats.draining = draining_;
  return stats;
}

absl::flat_hash_set<uint64_t> Directory::Instances() const {
  absl::MutexLock lock(&mutex_);
  absl::flat_hash_set<uint64_t> instances;
  for (const auto& [id, session] : sessions_) {
    instances.insert(session->instance);
  }
  return instances;
}

absl::StatusOr<SessionId> Directory::Resolve(
    const SessionPattern& pattern) const {
  absl::MutexLock lock(&mutex_);
  std::vector<SessionId> found;
  for (auto it = sessions_.lower_bound(pattern.First());
       it != sessions_.end() && pattern.Matches(it->first); ++it) {
    found.push_back(it->first);
  }
  if (found.size() > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(found.size(), " sessions are shown as ",
                     SessionHandle(found.front()), "; give the whole id"));
  }
  if (found.size() == 1) return found.front();
  for (const SessionId& expired : expired_) {
    if (pattern.Matches(expired)) return Unknown(expired);
  }
  return Unknown(pattern.First());
}

std::vector<SessionReport> Directory::List(const SessionId& after,
                                           size_t count) const {
  absl::MutexLock lock(&mutex_);
  std::vector<SessionReport> reports;
  const absl::Time now = clock_.Now();
  const auto shares_handle = [&reports](const SessionId& id) {
    return !reports.empty() &&
           SessionHandle(id) == SessionHandle(reports.back().id);
  };
  for (auto it = sessions_.upper_bound(after);
       it != sessions_.end() &&
       (reports.size() < count || shares_handle(it->first));
       ++it) {
    reports.push_back(ReportOf(*it->second, now));
  }
  return reports;
}

absl::StatusOr<SessionReport> Directory::Describe(const SessionId& id) const {
  absl::MutexLock lock(&mutex_);
  const Session* session = Find(id);
  if (session == nullptr) return Unknown(id);
  return ReportOf(*session, clock_.Now());
}

absl::StatusOr<std::vector<PageReport>> Directory::DescribePages(
    const SessionId& id) const {
  absl::MutexLock lock(&mutex_);
  const Session* session = Find(id);
  if (session == nullptr) return Unknown(id);
  std::vector<PageReport> reports;
  reports.reserve(session->pages.size());
  for (const auto& [name, entry] : session->pages) {
    reports.push_back(ReportOf(name, entry, session->geometry));
  }
  std::sort(reports.begin(), reports.end(),
            [](const PageReport& a, const PageReport& b) {
              return std::pair(a.page.page_index, a.page.layer) <
                     std::pair(b.page.page_index, b.page.layer);
            });
  return reports;
}

absl::StatusOr<StoredPage> Directory::PinStored(const SessionId& id,
                                                const PageName& page) {
  absl::MutexLock lock(&mutex_);
  const Session* session = Find(id);
  if (session == nullptr) return Unknown(id);
  const auto found = session->pages.find(page);
  if (found == session->pages.end() || !found->second.stored) {
    return WithReason(
        absl::NotFoundError(absl::StrCat("layer ", page.layer, ", page ",
                                         page.page_index, " is not stored")),
        ErrorReason::kNotFound);
  }
  const PageEntry& entry = found->second;
  StoredPage stored;
  FARKV_ASSIGN_OR_RETURN(stored.pin, PoolOf(entry).Pin(entry.handle));
  stored.identity = {.session = id,
                     .layer = page.layer,
                     .page_index = page.page_index,
                     .generation = entry.handle.generation,
                     .tier = entry.tier,
                     .t2_bits = entry.t2_bits};
  stored.geometry = session->geometry;
  stored.rows = entry.stored_rows;
  return stored;
}

}  // namespace farkv
