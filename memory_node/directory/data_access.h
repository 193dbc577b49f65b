// How the data plane asks the directory for pages. Plain values.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_DATA_ACCESS_H_
#define FARKV_MEMORY_NODE_DIRECTORY_DATA_ACCESS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"
#include "common/page/page_format.h"
#include "common/rpc/memory_types.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

// Whom a token was given to.
struct TokenOwner {
  std::string tenant;
  std::string worker_id;
  // How long its worker waits for an answer on the data plane; 0: not told.
  absl::Duration data_timeout;
  bool mapped = false;  // has been given memory of the node to map
};

// Who asks, and for which session: tenant as proven by the hello.
struct DataCaller {
  SessionId session;
  Epoch epoch;
  std::string tenant;
};

// A session that may be used now. `instance` tells it from every other session
// of this node's life, those of the same id included.
struct CalledSession {
  KvGeometry geometry;
  uint64_t instance = 0;
};

// The right to write one page. Pass it to Directory::FinishStore.
struct StoreTicket {
  SessionId session;
  uint64_t instance = 0;
  PageName page;
  KvGeometry geometry;
  // The page holds rows already: this is a repeat.
  bool was_stored = false;
  PagePin pin;
};

// Rows that a fetch asks for; `rows` is borrowed for the call.
struct PageWanted {
  int32_t page_index = 0;
  Generation generation;
  std::span<const uint64_t> rows;  // [KV head] bitmaps
  Tier tier = Tier::kT1;
  int t2_bits = 0;
};

// A stored page and what its header must say.
struct StoredPage {
  PageIdentity identity;
  KvGeometry geometry;
  std::vector<uint64_t> rows;  // [KV head]
  PagePin pin;
};

// Rows of one page and KV head that a decision is about; `rows` is a bitmap.
struct RowsWanted {
  PageName page;
  int32_t kv_head = 0;
  uint64_t rows = 0;
};

// A page as it was when it was pinned.
struct PageRead {
  PageName page;
  Tier tier = Tier::kT1;
  int t2_bits = 0;
  PagePin pin;
};

// Pages of one session, to be read where they lie. Pass it to
// Directory::CheckRead when that is done.
struct ReadTicket {
  SessionId session;
  Epoch epoch;
  uint64_t instance = 0;
  KvGeometry geometry;
  std::vector<PageRead> pages;  // ascending by name, none twice
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_DATA_ACCESS_H_
