#include "memory_node/data/peer_table.h"

#include <algorithm>

namespace farkv {

bool PeerTable::Note(PeerId peer, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, added] =
      peers_.try_emplace(peer.value, Entry{std::nullopt, now, now, 0, 0});
  if (added) ++num_unproven_;
  entry->second.last_message = now;
  return added;
}

void PeerTable::Add(PeerId peer, const TokenOwner& owner, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto [found, added] = peers_.try_emplace(peer.value);
  Entry& entry = found->second;
  if (!added && !entry.owner.has_value()) --num_unproven_;
  entry.owner = owner;
  entry.connected = entry.last_message = now;
}

void PeerTable::Count(PeerId peer, uint64_t sent, uint64_t received) {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(peer.value);
  if (found == peers_.end()) return;
  found->second.bytes_sent += sent;
  found->second.bytes_received += received;
}

void PeerTable::NoteMapped(const TokenOwner& owner) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, entry] : peers_) {
    if (!entry.owner.has_value()) continue;
    if (entry.owner->tenant == owner.tenant &&
        entry.owner->worker_id == owner.worker_id) {
      entry.owner->mapped = true;
    }
  }
}

void PeerTable::Remove(PeerId peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(peer.value);
  if (found != peers_.end()) Erase(found);
}

void PeerTable::Erase(Peers::iterator entry) {
  if (!entry->second.owner.has_value()) --num_unproven_;
  peers_.erase(entry);
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

absl::Duration PeerTable::DataTimeout(PeerId peer) const {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(peer.value);
  if (found == peers_.end() || !found->second.owner.has_value()) {
    return absl::ZeroDuration();
  }
  return found->second.owner->data_timeout;
}

size_t PeerTable::num_unproven() const {
  absl::MutexLock lock(&mutex_);
  return num_unproven_;
}

std::vector<PeerReport> PeerTable::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<PeerReport> reports;
  for (const auto& [id, entry] : peers_) {
    if (!entry.owner.has_value()) continue;
    reports.push_back({id, entry.owner->tenant, entry.owner->worker_id,
                       entry.last_message, entry.bytes_sent,
                       entry.bytes_received, entry.owner->mapped});
  }
  return reports;
}

PeerTable::Silent PeerTable::TakeSilent(const PeerLimits& limits,
                                        absl::Time now) {
  Silent silent;
  absl::MutexLock lock(&mutex_);
  for (auto next = peers_.begin(); next != peers_.end();) {
    const auto found = next++;
    const Entry& entry = found->second;
    const bool proven = entry.owner.has_value();
    const absl::Time due = proven ? entry.last_message + limits.silence
                                  : entry.connected + limits.hello;
    if (due > now) {
      silent.next = std::min(silent.next, due);
      continue;
    }
    (proven ? silent.peers : silent.unproven).push_back(PeerId{found->first});
    Erase(found);
  }
  return silent;
}

std::optional<PeerId> PeerTable::TakeExcess(const PeerLimits& limits) {
  absl::MutexLock lock(&mutex_);
  if (num_unproven_ <= limits.max_unproven) return std::nullopt;
  auto oldest = peers_.end();
  for (auto entry = peers_.begin(); entry != peers_.end(); ++entry) {
    if (entry->second.owner.has_value()) continue;
    if (oldest == peers_.end() ||
        entry->second.connected < oldest->second.connected) {
      oldest = entry;
    }
  }
  const PeerId peer{oldest->first};
  Erase(oldest);
  return peer;
}

}  // namespace farkv
