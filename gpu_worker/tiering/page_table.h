// Where the rows of one sequence are: the truth of the worker (DESIGN 13).
// Layers share one decision, so residence is kept per position; live bitmaps
// per layer and KV head. Where a page lies on its node: remote_pages.h.
//
// A slot is *written* once its row has existed, *alive* while some layer and KV
// head has a live row there, *resident* while its group has a line set, and
// *cold* when it is alive and not resident; a cold slot's page is stored.
// Thread-compatible: the engine thread owns it.
#ifndef FARKV_GPU_WORKER_TIERING_PAGE_TABLE_H_
#define FARKV_GPU_WORKER_TIERING_PAGE_TABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/t0_lines.h"

namespace farkv {

// kOpen: the tail, or a page whose last rows are being written. kFull: sealed
// and waiting for its store. kStoring: its rows have been copied out and are
// on their way. kStored: the node has confirmed every layer. kLost: it was
// stored, and the node has lost it or given it away: its cold rows are nowhere
// until they are computed again (lost_rows.h), with whole groups. kGone: all
// its rows have been destroyed; no node needs to have it.
enum class StoreState : uint8_t {
  kOpen,
  kFull,
  kStoring,
  kStored,
  kLost,
  kGone
};

struct Page {
  int32_t index = 0;
  StoreState state = StoreState::kOpen;
  uint64_t written = 0;            // bit per slot
  uint64_t alive = 0;              // the OR of `live`
  uint64_t resident = 0;           // bit per slot, whole groups
  uint64_t wanted = ~uint64_t{0};  // slots that the plan wants in T0
  std::vector<LineSetId> lines;    // [64 / g]
  std::vector<uint64_t> live;      // [layer][KV head]
  // Changes whenever runs must say something else; never the same twice
  // within a table.
  uint64_t version = 0;
  // Where it is to be stored the page may lie already, for want of an answer:
  // a repetition must bring the same bytes.
  bool sent = false;
  // Its node counts rows as live that have been destroyed since.
  bool eviction_due = false;

  uint64_t cold() const { return alive & ~resident; }
  bool full() const { return written == ~uint64_t{0}; }
  const uint64_t* layer_live(int layer, int num_kv_heads) const {
    return live.data() +
           static_cast<size_t>(layer) * static_cast<size_t>(num_kv_heads);
  }
};

// Bits [first, first + count) of a bitmap; count 0 to 64.
constexpr uint64_t SlotMask(int first, int count) {
  const uint64_t low =
      count >= kPageTokens ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  return count == 0 ? 0 : low << first;
}

class PageTable {
 public:
  PageTable(const KvGeometry& geometry, int granularity)
      : geometry_(geometry), granularity_(granularity) {}

  int64_t num_tokens() const { return num_tokens_; }
  int num_pages() const { return static_cast<int>(pages_.size()); }
  Page& page(int index) { return *pages_[static_cast<size_t>(index)]; }
  const Page& page(int index) const {
    return *pages_[static_cast<size_t>(index)];
  }
  int granularity() const { return granularity_; }
  int64_t resident_sets() const { return resident_sets_; }

  // Line sets that Append(num_rows) would take.
  int64_t SetsFor(int num_rows) const;
  // Adds the next positions; SetsFor(num_rows) sets must be free.
  void Append(int num_rows, T0Lines& lines);
  // Removes the last positions, with the sets that they alone used.
  void Truncate(int64_t num_tokens, T0Lines& lines);

  // Destroys the rows of `page` that are not in `live`, [layer][KV head]
  // bitmaps, for good. Returns how many there were.
  int64_t Keep(Page& page, std::span<const uint64_t> live);

  // Drops the line set of the group of `slot`; the page must be stored, or the
  // group dead or lost.
  void Drop(Page& page, int slot, T0Lines& lines);
  // Gives the group of `slot` a set that already holds its rows.
  void Adopt(Page& page, int slot, LineSetId set);
  // Returns every set.
  void Clear(T0Lines& lines);

  // Slots of the group of `slot`.
  uint64_t GroupMask(int slot) const {
    return SlotMask(slot / granularity_ * granularity_, granularity_);
  }

 private:
  void AddWritten(Page& page, uint64_t slots);
  void RemoveWritten(Page& page, uint64_t slots);

  KvGeometry geometry_;
  int granularity_;
  int64_t num_tokens_ = 0;
  int64_t resident_sets_ = 0;
  uint64_t last_version_ = 0;
  // Owned one by one, because runs borrow the live bitmaps.
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_PAGE_TABLE_H_
