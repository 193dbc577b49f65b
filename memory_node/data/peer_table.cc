#include "memory_node/data/peer_table.h"

namespace farkv {

void PeerTable::Add(PeerId peer, const TokenOwner& owner, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  peers_[peer.value] = Entry{owner, now};
}

void PeerTable::Remove(PeerId peer) {
  absl::MutexLock lock(&mutex_);
  peers_.erase(peer.value);
}

absl::StatusOr<std::string> PeerTable::Tenant(PeerId peer, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(peer.value);
  if (found == peers_.end()) {
    return absl::PermissionDeniedError(
        "this connection has not shown a token yet: say hello first");
  }
  found->second.last_message = now;
  return found->second.owner.tenant;
}

std::vector<PeerReport> PeerTable::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<PeerReport> reports;
  for (const auto& [id, entry] : peers_) {
    reports.push_back(
        {id, entry.owner.tenant, entry.owner.worker_id, entry.last_message});
  }
  return reports;
}

}  // namespace farkv
