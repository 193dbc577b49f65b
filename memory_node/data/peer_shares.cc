#include "memory_node/data/peer_shares.h"

#include "absl/strings/str_cat.h"

namespace farkv {

absl::Status PeerShares::TryTake(PeerId peer, size_t amount) {
  if (amount == 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(peer.value);
  const size_t held = found == held_.end() ? 0 : found->second;
  const size_t holders = held_.size() + (held == 0 ? 1 : 0);
  const size_t share = bound_ / holders;
  const size_t total = total_ + amount;
  const bool within = held == 0 || held + amount <= share;
  if (total > kCeiling * bound_ || (total > bound_ && !within)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        held, " of ", total_, " ", what_, " are this peer's, with ", amount,
        " more; above ", bound_, " its share is ", share));
  }
  total_ = total;
  held_[peer.value] = held + amount;
  return absl::OkStatus();
}

void PeerShares::Give(PeerId peer, size_t amount) {
  if (amount == 0) return;
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(peer.value);
  total_ -= amount;
  found->second -= amount;
  if (found->second == 0) held_.erase(found);
}

size_t PeerShares::total() const {
  absl::MutexLock lock(&mutex_);
  return total_;
}

}  // namespace farkv
