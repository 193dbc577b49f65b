// Read-only snapshots of the directory, for metrics, the CLI and tests.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_SESSION_REPORT_H_
#define FARKV_MEMORY_NODE_DIRECTORY_SESSION_REPORT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/session_handle.h"
#include "common/layout/kv_geometry.h"
#include "common/rpc/memory_types.h"

namespace farkv {

struct DirectoryStats {
  size_t sessions = 0;
  uint64_t reserved_pages = 0;  // not stored yet
  uint64_t stored_pages = 0;
  uint64_t live_rows = 0;
  uint64_t t2_pages = 0;          // of the stored ones
  uint64_t t2_live_rows = 0;      // of the live ones
  uint64_t expired_sessions = 0;  // since the start
  uint64_t compressed_pages = 0;  // since the start
  bool draining = false;
};

struct SessionReport {
  SessionId id;
  std::string tenant;
  std::string worker_id;
  KvGeometry geometry;
  absl::Duration lease_remaining;
  absl::Duration age;
  uint64_t pages = 0;
  uint64_t stored_pages = 0;
  uint64_t bytes = 0;
  uint64_t live_rows = 0;
  uint64_t t2_pages = 0, t2_bytes = 0;  // of the pages and bytes
  bool mapped = false;                  // its worker reads pages in place
};

// A session whose lease ran out.
struct RevokedSession {
  SessionId id;
  std::string tenant;
};

enum class HeldState { kReserved, kStored, kQuarantined };

// A page that is not free, and what holds it.
struct HeldPage {
  HeldState state = HeldState::kReserved;
  SessionId session;  // of a page in quarantine: whose it was
  std::string tenant;
  uint64_t instance = 0;  // of the session; kNoInstance in quarantine
  // These four are unset in quarantine.
  std::string worker_id;
  PageName page;
  absl::Duration age;  // of its state
  int t2_bits = 0;
  Tier tier = Tier::kT1;
  Generation generation;
  uint64_t bytes = 0;
  uint64_t live_rows = 0;   // of all heads; 0 until stored
  absl::Duration held_for;  // until the lease or the quarantine is over
  uint32_t pins = 0;        // copies that run over it
  bool storing = false, compressing = false, mapped = false;
};
// Above that of every session.
inline constexpr uint64_t kNoInstance = std::numeric_limits<uint64_t>::max();

// Which pages, and where to go on: behind the page `after_generation` of the
// session `after_instance` (or of none, kNoInstance).
struct PageQuery {
  std::optional<SessionPattern> sessions;
  std::optional<Tier> tier;
  std::optional<HeldState> state;
  uint64_t after_instance = 0, after_generation = 0;
  size_t count = 1000;
};

struct PageReport {
  PageName page;
  bool stored = false;
  Tier tier = Tier::kT1;
  int t2_bits = 0;
  Generation generation;
  std::vector<uint64_t> live;  // [KV head]; zero until stored
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_SESSION_REPORT_H_
