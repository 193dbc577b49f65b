// The control plane in domain types: generated protobuf types stop at
// common/rpc. Plain values; field meanings as in memory.proto.
#ifndef FARKV_COMMON_RPC_MEMORY_TYPES_H_
#define FARKV_COMMON_RPC_MEMORY_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr int kMaxPlanItems = 4096;
inline constexpr int kMaxRenewals = 1024;

struct Handshake {
  uint32_t protocol_version = kProtocolVersion;
  uint32_t page_format_version = 0;
  std::string kernel_target;
  std::string software_version;
};

struct OpenSessionCall {
  Handshake handshake;
  SessionId session;
  std::string tenant;
  std::string worker_id;
  KvGeometry geometry;
  bool bitwise = true;
  absl::Duration lease;
  // Of a request that runs already and lost its last session: a draining node
  // takes it, too.
  bool continues_request = false;
  // How long the worker waits for an answer on the data plane; 0: not told.
  absl::Duration data_timeout;
};

struct SessionGrant {
  Handshake handshake;
  std::string node_id;
  Epoch epoch;
  absl::Duration lease;  // count it from sending the call
  std::string data_host;
  uint16_t data_port = 0;
  std::string map_socket;  // name inside --map-dir; empty: no map
  std::string token;       // one-time, for data-plane and map handshakes
  uint64_t page_stride = 0;
  bool resumed = false;  // the session ran already
  uint64_t last_sequence_number = 0;
};

struct PageName {
  int32_t layer = 0;
  int32_t page_index = 0;
  friend auto operator<=>(const PageName&, const PageName&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PageName& name) {
    return H::combine(std::move(h), name.layer, name.page_index);
  }
};

struct PagePlacement {
  PageName page;
  Generation generation;
  uint32_t slab_id = 0;
  uint64_t slab_offset = 0;
  Tier tier = Tier::kT1;
  absl::Status status;
};

// Compress a stored T1 page: `tier` is kT2, `t2_bits` 8 or 4. `exceptions` are
// rows to keep as they are (sinks), at most 8 per head; empty: none. The node
// adds those with the widest values (common/page/t2_codec.h). Once only: a page
// that is T2 of the same bits already answers its place.
struct TierChange {
  PageName page;
  Tier tier = Tier::kT2;
  int t2_bits = 8;
  std::vector<uint64_t> exceptions;  // [KV head]
};

struct PageEviction {
  PageName page;
  std::vector<uint64_t> live;  // [KV head]
};

// One mutating call; `sequence_number` rises by one per session.
struct TierPlanCall {
  SessionId session;
  Epoch epoch;
  uint64_t sequence_number = 0;
  std::vector<PageName> reserve;  // all or none
  std::vector<TierChange> tier_changes;
  std::vector<PageEviction> evictions;
  std::vector<PageName> free;
};

struct TierPlanResult {
  std::vector<PagePlacement> reserved;
  // One per tier change, in order. OK: the T2 page's place; the T1 page stays
  // readable under its old generation for one lease more. Otherwise the page
  // is as it was: NOT_FOUND not stored, FAILED_PRECONDITION T2 of other bits,
  // OUT_OF_RANGE a value that cannot be coded, RESOURCE_EXHAUSTED no room in
  // the T2 pool, ABORTED a store of it runs, DATA_LOSS a damaged row.
  std::vector<PagePlacement> moved;
  std::vector<absl::Status> evictions;
  uint64_t freed_pages = 0;
  bool pressure = false;
  bool draining = false;  // reserved all the same; better places are elsewhere
};

struct LeaseRenewal {
  SessionId session;
  absl::Duration lease;
  absl::Status status;
};

struct RenewResult {
  std::vector<LeaseRenewal> renewals;
  bool pressure = false;
  bool draining = false;
};

struct NodeEvent {
  Epoch epoch;
  bool pressure = false;
  bool draining = false;
  std::vector<SessionId> revoked;
  uint64_t free_pages = 0;
  uint64_t free_bytes = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_MEMORY_TYPES_H_
