// How much each peer holds of something that all of them share: bytes of
// replies on their way, attends that wait.
//
// Up to the bound it is first come, first served. Above it a peer gets only
// what its even share (the bound over those that hold any) leaves it, so that
// peers that stopped reading, or ask for too much, use up their own shares and
// no other's. All together never hold more than kCeiling bounds: so much do
// thirty peers come to that take all they can get. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_PEER_SHARES_H_
#define FARKV_MEMORY_NODE_DATA_PEER_SHARES_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/transport/transport.h"

namespace farkv {

class PeerShares {
 public:
  static constexpr size_t kCeiling = 4;

  // `what` is for messages, as "bytes of replies"; a literal.
  PeerShares(const char* what, size_t bound) : what_(what), bound_(bound) {}
  PeerShares(const PeerShares&) = delete;
  PeerShares& operator=(const PeerShares&) = delete;

  // RESOURCE_EXHAUSTED naming the numbers compared; nothing is taken then. A
  // peer that holds nothing may take more than its share at once, so that no
  // request is refused for ever.
  absl::Status TryTake(PeerId peer, size_t amount);
  // Returns what one TryTake took.
  void Give(PeerId peer, size_t amount);

  size_t total() const;

 private:
  const char* const what_;
  const size_t bound_;
  mutable absl::Mutex mutex_;
  size_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of peers that hold any.
  absl::flat_hash_map<uint64_t, size_t> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_PEER_SHARES_H_
