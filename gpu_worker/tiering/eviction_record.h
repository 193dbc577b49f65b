// What the cache remembers of rows that were destroyed: for tests that compare
// decisions, for benches and for people. Plain values.
#ifndef FARKV_GPU_WORKER_TIERING_EVICTION_RECORD_H_
#define FARKV_GPU_WORKER_TIERING_EVICTION_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace farkv {

// One event of one sequence. Runs that decide alike have equal records.
struct EvictionRecord {
  int64_t event = 0;           // of the sequence, from 0
  int64_t num_tokens = 0;      // processed when it was decided
  std::string policy;          // as --eviction names it
  int64_t num_kept = 0;        // rows of each layer and KV head that stayed
  int64_t destroyed_rows = 0;  // by this event, all layers and heads
  // [layer][KV head]: a digest of the positions that stayed.
  std::vector<uint64_t> kept_digests;

  friend bool operator==(const EvictionRecord&,
                         const EvictionRecord&) = default;
};

// The last events of a sequence that are remembered.
inline constexpr size_t kMaxEvictionRecords = 1024;

// Which rows of one page exist.
struct PageLiveRows {
  int32_t page_index = 0;
  std::vector<uint64_t> live;  // [layer][KV head], a bit per slot

  friend bool operator==(const PageLiveRows&, const PageLiveRows&) = default;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_EVICTION_RECORD_H_
