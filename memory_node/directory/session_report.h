// Read-only snapshots of the directory, for metrics, the CLI and tests.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_SESSION_REPORT_H_
#define FARKV_MEMORY_NODE_DIRECTORY_SESSION_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
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
};

// A session whose lease ran out.
struct RevokedSession {
  SessionId id;
  std::string tenant;
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
