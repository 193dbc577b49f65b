#include "memory_node/data/peer_table.h"

#include <algorithm>

namespace farkv {

bool PeerTable::Note(PeerId peer, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, added] =
      peers_.try_emplace(peer.value, Entry{std::nullopt, now, now});
  entry->second.last_message = now;
  return added;
}

void PeerTable::Add(PeerId peer, const TokenOwner& owner, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  peers_[peer.value] = Entry{owner, now, now};
}

void PeerTable::Remove(PeerId peer) {
  absl::MutexLock lock(&mutex_);
  peers_.erase(peer.value);
}

absl::StatusOr<std::string> PeerTable::Tenant(PeerId peer, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(peer.value);
  if (found == peers_.end() || !found->second.owner.has_value()) {
    return absl::PermissionDeniedError(
        "this connection has not shown a token yet: say hello first");
  }
  found->second.last_message = now;
  return found->second.owner->tenant;
}

std::vector<PeerReport> PeerTable::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<PeerReport> reports;
  for (const auto& [id, entry] : peers_) {
    if (!entry.owner.has_value()) continue;
    reports.push_back(
        {id, entry.owner->tenant, entry.owner->worker_id, entry.last_message});
  }
  return reports;
}

PeerTable::Silent PeerTable::TakeSilent(const PeerLimits& limits,
                                        absl::Time now) {
  Silent silent;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, entry] : peers_) {
    const absl::Time due = entry.owner.has_value()
                               ? entry.last_message + limits.silence
                               : entry.first_message + limits.hello;
    if (due <= now) {
      silent.peers.push_back(PeerId{id});
    } else {
      silent.next = std::min(silent.next, due);
    }
  }
  for (PeerId peer : silent.peers) peers_.erase(peer.value);
  return silent;
}

}  // namespace farkv
