// What the cache keeps about one open sequence. Plain state, owned by the
// engine thread.
#ifndef FARKV_GPU_WORKER_TIERING_SEQUENCE_H_
#define FARKV_GPU_WORKER_TIERING_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/fetch_operation.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tiering/page_table.h"
#include "gpu_worker/tiering/pending_event.h"
#include "gpu_worker/tiering/remote_pages.h"
#include "gpu_worker/tiering/run_cache.h"
#include "gpu_worker/tiering/selected_rows.h"
#include "gpu_worker/tiering/window_queries.h"

namespace farkv {

// How a step gets at the cold rows of a page.
enum class ReadWay : uint8_t {
  kFetch,   // to staging
  kMap,     // in place, in the node's memory
  kAttend,  // not at all: the node attends to the whole page
};

// A page with cold rows, as one step reads it.
struct ReadPage {
  int32_t page_index = 0;
  uint64_t slots = 0;  // the cold ones
  int node = -1;
  ReadWay way = ReadWay::kFetch;

  friend bool operator==(const ReadPage&, const ReadPage&) = default;
};

// Cold reads of one sequence (cold_reads.h).
struct SequenceReads {
  std::vector<ReadPage> pages;      // of this step, ascending
  std::vector<ReadPage> selected;   // those of a layer that reads some groups
  std::vector<ReadPage> requested;  // what `layers` was asked for
  std::vector<std::vector<std::shared_ptr<FetchOperation>>> layers;
  std::vector<int32_t> elsewhere;  // page indices of those to attend, ascending
};

// What pushed-down steps left at the nodes (pushdown.h).
struct SequencePushdown {
  // By node: of the last committed step in which it attended, [layer].
  std::map<int, std::vector<AttendGlobals>> globals;
  // Pages whose scores a node has gathered since the last collection.
  std::map<int, std::set<int32_t>> pages;  // by node
  uint64_t collection = 0;                 // number of the last one
  // Some that a node had gathered is gone: scores lack it.
  bool is_incomplete = false;
};

// Rows on their way back into T0 (tier_moves.h).
struct SequencePromotion {
  std::vector<ReadPage> pages;  // ascending; whole groups
  std::vector<std::shared_ptr<FetchOperation>> fetches;  // all layers
  absl::Time retry_at = absl::InfinitePast();
};

// Rows that exist nowhere any more (lost_rows.h).
struct SequenceLoss {
  // What the reads of the last step have told: nodes that have lost all that
  // they had of the sequence, single pages of the others, and whether a node
  // that was distrusted before has failed again.
  std::set<int> nodes;
  std::set<int32_t> pages;
  bool is_repeated = false;
  // Given up and to be computed again, ascending. The next steps are theirs.
  std::vector<int64_t> positions;
};

// What destroying rows needs to remember (destruction.h).
struct SequenceDestruction {
  int64_t destroyed = 0;      // rows of each layer and KV head
  int64_t logged_tokens = 0;  // of the last event that the log has, also of
                              // lives before a Restart
  std::optional<PendingEvent> pending;
  bool skip_logged = false;
  QueryRing queries;
  // [layer][KV head] -> cumulative attention per position, 2^-40, for policies
  // that rank by it head by head; else empty.
  std::vector<std::vector<std::vector<int64_t>>> head_scores;
  LossRecord loss;
  std::deque<EvictionRecord> records;
};

// The keys of one layer and KV head as they were written, by position
// (compact_positions.h).
struct WrittenKeys {
  std::vector<float> floats;         // [position][head_dim]
  std::vector<int64_t> written_for;  // the position that they were rotated for
  std::vector<int64_t> turned_to;    // and that of the key in T0
};

struct Sequence {
  Sequence(SequenceId sequence_id, SequenceSpec sequence_spec, int64_t sets,
           const KvGeometry& geometry, int granularity)
      : id(sequence_id),
        spec(std::move(sequence_spec)),
        share_sets(sets),
        table(geometry, granularity),
        runs(geometry) {
    stats.cold_mode = "none";
  }

  SequenceId id;
  SequenceSpec spec;
  int64_t share_sets;  // promised line sets
  PageTable table;
  RunCache runs;
  // Cumulative attention per position, 2^-40; as long as num_tokens.
  std::vector<int64_t> scores;
  SequenceTierStats stats;

  // Empty without memory nodes.
  RemoteState remote;
  SequenceReads reads;
  SequencePushdown pushdown;
  SequencePromotion promotion;
  SequenceLoss loss;
  std::vector<int64_t> promoted_groups;  // by the last plan, ascending
  SequenceDestruction destruction;
  SequenceSelection selection;
  // [layer][KV head]; empty where positions are absolute.
  std::vector<std::vector<WrittenKeys>> written_keys;
  std::vector<int64_t> reads_by_node;  // cold rows read, by node index

  void CountReads(int node, int64_t rows) {
    const auto index = static_cast<size_t>(node);
    if (reads_by_node.size() <= index) reads_by_node.resize(index + 1);
    reads_by_node[index] += rows;
  }

  // Of an earlier life of this sequence; what that destroyed is destroyed
  // again.
  void TakeFiguresOf(const Sequence& old) {
    stats = old.stats;
    reads_by_node = old.reads_by_node;
    destruction.logged_tokens = old.destruction.logged_tokens;
    stats.destroyed_rows = stats.evictions = stats.broken_scores = 0;
    stats.destroyed_share = stats.destroyed_share_average = 0;
    stats.node_evictions = 0;
    stats.evictions_digest = 0;
  }

  void NotePeak(const T0Lines& lines) {
    const auto sets = static_cast<uint64_t>(table.resident_sets());
    stats.t0_peak_bytes = std::max(
        stats.t0_peak_bytes, static_cast<int64_t>(sets * lines.set_bytes()));
  }
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_SEQUENCE_H_
