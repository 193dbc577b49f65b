#include "memory_node/service/node_events.h"

#include <utility>

namespace farkv {

NodeEvents::NodeEvents(const Directory& directory, const PagePool& pool)
    : directory_(directory), pool_(pool), last_(state()) {}

uint64_t NodeEvents::Subscribe(Subscriber subscriber) {
  auto shared = std::make_shared<const Subscriber>(std::move(subscriber));
  uint64_t id = 0;
  {
    absl::MutexLock lock(&mutex_);
    id = next_id_++;
    new_.push_back(shared);
    subscribers_[id] = std::move(shared);
  }
  Publish();
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
  {
    absl::MutexLock lock(&mutex_);
    if (state() == last_ && revoked.empty()) return;
    changed_ = true;
    revoked_.insert(revoked_.end(), revoked.begin(), revoked.end());
  }
  Publish();
}

bool NodeEvents::BeginRound(Round& round) {
  if (publishing_ || (!changed_ && new_.empty())) return false;
  publishing_ = true;
  round.state = state();
  if (!changed_) {
    round.subscribers = std::exchange(new_, {});
    return true;
  }
  changed_ = false;
  new_.clear();  // told with all others
  last_ = round.state;
  round.revoked = std::exchange(revoked_, {});
  for (const auto& [id, subscriber] : subscribers_) {
    round.subscribers.push_back(subscriber);
  }
  return true;
}

void NodeEvents::Publish() {
  for (;;) {
    Round round;
    {
      absl::MutexLock lock(&mutex_);
      if (!BeginRound(round)) return;
    }
    for (const auto& subscriber : round.subscribers) {
      (*subscriber)(round.state, round.revoked);
    }
    absl::MutexLock lock(&mutex_);
    publishing_ = false;
  }
}

}  // namespace farkv
