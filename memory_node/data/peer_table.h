// Which tenant each connected peer has proven to be. A peer proves it once,
// with a one-time token (hello), and keeps it until its connection ends. A peer
// is known from its first message on. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_
#define FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/transport/transport.h"
#include "memory_node/directory/data_access.h"

namespace farkv {

struct PeerReport {
  uint64_t id = 0;
  std::string tenant;
  std::string worker_id;
  absl::Time last_message;
};

// How long a peer may be silent.
struct PeerLimits {
  absl::Duration silence = absl::Seconds(90);  // 3 of the longest leases
  // From the first message to the hello.
  absl::Duration hello = absl::Seconds(10);
};

class PeerTable {
 public:
  // Notes that `peer` said something; true when it is the first time.
  bool Note(PeerId peer, absl::Time now);
  void Add(PeerId peer, const TokenOwner& owner, absl::Time now);
  void Remove(PeerId peer);
  // PERMISSION_DENIED for a peer that was never added. Notes the time.
  absl::StatusOr<std::string> Tenant(PeerId peer, absl::Time now);
  // Peers that have proven who they are.
  std::vector<PeerReport> List() const;

  // Peers that were silent for too long, no longer in the table, and when the
  // next one may be: the infinite future when there is none.
  struct Silent {
    std::vector<PeerId> peers;
    absl::Time next = absl::InfiniteFuture();
  };
  Silent TakeSilent(const PeerLimits& limits, absl::Time now);

 private:
  struct Entry {
    std::optional<TokenOwner> owner;
    absl::Time first_message;
    absl::Time last_message;
  };
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_
