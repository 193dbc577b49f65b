// Which tenant each connected peer has proven to be. A peer proves it once,
// with a one-time token (hello), and keeps it until its connection ends. A peer
// is known from its connection on; those that have proven nothing yet are
// bounded in time and number. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_
#define FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_

#include <cstddef>
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
  // Of messages with it, headers included.
  uint64_t bytes_sent = 0, bytes_received = 0;
  bool mapped = false;  // reads the node's memory in place
};

// How long a peer may be silent.
struct PeerLimits {
  absl::Duration silence = absl::Seconds(90);  // 3 of the longest leases
  // From the connection to the hello.
  absl::Duration hello = absl::Seconds(10);
  // Peers without a hello. Beyond it the one that is there for longest goes: an
  // honest hello takes milliseconds, and who only holds places must not keep
  // others out.
  size_t max_unproven = 256;
};

class PeerTable {
 public:
  // Notes that `peer` is connected or said something; true when it is the first
  // time.
  bool Note(PeerId peer, absl::Time now);
  void Add(PeerId peer, const TokenOwner& owner, absl::Time now);
  // Bytes that went to and came from a peer.
  void Count(PeerId peer, uint64_t sent, uint64_t received);
  // The worker's connections belong to one that maps.
  void NoteMapped(const TokenOwner& owner);
  void Remove(PeerId peer);
  // PERMISSION_DENIED for a peer that was never added. Notes the time.
  absl::StatusOr<std::string> Tenant(PeerId peer, absl::Time now);
  // How long the peer's worker waits for an answer; 0: not told.
  absl::Duration DataTimeout(PeerId peer) const;
  // Peers that have proven who they are.
  std::vector<PeerReport> List() const;
  size_t num_unproven() const;

  // Peers that were silent for too long, no longer in the table, and when the
  // next one may be: the infinite future when there is none.
  struct Silent {
    std::vector<PeerId> peers;     // that had proven who they are
    std::vector<PeerId> unproven;  // that never said hello
    absl::Time next = absl::InfiniteFuture();
  };
  Silent TakeSilent(const PeerLimits& limits, absl::Time now);
  // The peer without a hello that is one too many, no longer in the table.
  std::optional<PeerId> TakeExcess(const PeerLimits& limits);

 private:
  struct Entry {
    std::optional<TokenOwner> owner;
    absl::Time connected;
    absl::Time last_message;
    uint64_t bytes_sent = 0, bytes_received = 0;
  };
  using Peers = absl::flat_hash_map<uint64_t, Entry>;

  void Erase(Peers::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  Peers peers_ ABSL_GUARDED_BY(mutex_);
  size_t num_unproven_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_PEER_TABLE_H_
