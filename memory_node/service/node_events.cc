#include "memory_node/service/node_events.h"

#include <utility>

namespace farkv {

NodeEvents::NodeEvents(const Directory& directory, const PagePool& pool)
    : directory_(directory), pool_(pool), last_(state()) {}

uint64_t NodeEvents::Subscribe(Subscriber subscriber) {
  absl::MutexLock lock(&mutex_);
  const uint64_t id = next_id_++;
  subscribers_[id] = std::make_shared<const Subscriber>(std::move(subscriber));
  return id;
}

void NodeEvents::Unsubscribe(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  subscribers_.erase(id);
}

NodeState NodeEvents::state() const {
  const Directory::Summary summary = directory_.summary();
  return {pool_.pressure(), summary.draining, summary.sessions};
}

void NodeEvents::Refresh(const std::vector<RevokedSession>& revoked) {
  const NodeState now = state();
  std::vector<std::shared_ptr<const Subscriber>> subscribers;
  {
    absl::MutexLock lock(&mutex_);
    if (now == last_ && revoked.empty()) return;
    last_ = now;
    for (const auto& [id, subscriber] : subscribers_) {
      subscribers.push_back(subscriber);
    }
  }
  for (const auto& subscriber : subscribers) (*subscriber)(now, revoked);
}

}  // namespace farkv
