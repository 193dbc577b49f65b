// What the directory keeps of one session. Plain data; Directory guards it.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_SESSION_H_
#define FARKV_MEMORY_NODE_DIRECTORY_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"
#include "common/rpc/memory_types.h"
#include "memory_node/directory/reply_log.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

// The T1 page that a T2 page was made from: in quarantine, and readable under
// its own generation, for one lease.
struct PreviousPage {
  PageHandle handle;
  absl::Time until;
  std::vector<uint64_t> stored_rows;
};

// A page from its reservation to its release.
struct PageEntry {
  PageHandle handle;
  Tier tier = Tier::kT1;
  int t2_bits = 0;
  std::unique_ptr<PreviousPage> previous;  // of T2 pages
  bool stored = false;
  absl::Time since;  // reserved, stored or compressed: as it is now
  // A store copies into the page now; another one has to wait.
  bool storing = false;
  // A plan compresses the page now; it must not be written.
  bool compressing = false;
  // Rows that can be read. T1: those that were ever stored, [KV head] bitmaps;
  // eviction does not clear them, so a late fetch of a row that was evicted
  // meanwhile still works. T2: those that lived when it was made.
  std::vector<uint64_t> stored_rows;
};

struct Session {
  SessionId id;
  uint64_t instance = 0;  // tells two sessions of the same id apart
  std::string tenant;
  std::string worker_id;
  KvGeometry geometry;
  size_t stride = 0;
  absl::Time opened;
  absl::Duration data_timeout;  // both: see TokenOwner
  bool mapped = false;
  absl::Duration lease;  // the one that ends at `lease_end`
  absl::Time lease_end = absl::InfinitePast();
  std::string token;
  ReplyLog replies;
  bool plan_running = false;  // one ApplyTierPlan at a time
  absl::flat_hash_map<PageName, PageEntry> pages;
  uint64_t stored_pages = 0;
  uint64_t live_rows = 0;  // of all heads of the stored pages
  // The part of the three above and of the bytes that is T2.
  uint64_t t2_pages = 0;
  uint64_t t2_bytes = 0;
  uint64_t t2_live_rows = 0;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_SESSION_H_
