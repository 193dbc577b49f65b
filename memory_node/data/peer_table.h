// Which tenant each connected peer has proven to be. A peer proves it once,
// with a one-time token (hello), and keeps it until its connection ends.
// Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_
#define FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_

#include <cstdint>
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

class PeerTable {
 public:
  void Add(PeerId peer, const TokenOwner& owner, absl::Time now);
  void Remove(PeerId peer);
  // PERMISSION_DENIED for a peer that was never added. Notes the time.
  absl::StatusOr<std::string> Tenant(PeerId peer, absl::Time now);
  std::vector<PeerReport> List() const;

 private:
  struct Entry {
    TokenOwner owner;
    absl::Time last_message;
  };
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_
