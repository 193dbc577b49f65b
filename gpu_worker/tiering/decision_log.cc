#include "gpu_worker/tiering/decision_log.h"

#include <span>
#include <utility>

#include "common/base/crc32c.h"

namespace farkv {

uint32_t LoggedEviction::digest() const {
  return Crc32c(std::as_bytes(std::span(record.kept_digests)));
}

void DecisionLog::Add(LoggedEviction event) {
  event.id = ++last_id_;
  if (events_.size() == kMaxEvictionRecords) events_.pop_front();
  events_.push_back(std::move(event));
}

std::vector<LoggedEviction> DecisionLog::List(
    const DecisionQuery& query) const {
  std::vector<LoggedEviction> found;
  for (auto it = events_.rbegin();
       it != events_.rend() && found.size() < query.count; ++it) {
    if (it->id >= query.before) continue;
    if (query.sessions && !query.sessions->Matches(it->session)) continue;
    found.push_back(*it);
  }
  return found;
}

}  // namespace farkv
