// The KV cache of one worker: T0 lines as a cache of the log that the memory
// nodes hold. The engine sees only this class; what a row's tier is and how a
// cold row arrives is decided behind it. DESIGN 3, 5.2 to 5.5, 13.
//
// Goals: attention always sees every live row, whatever its tier, so that the
// output has the same bits; bounded T0 and staging; a step that read a page
// which was given away is discarded, never used. Non-goals: choosing tokens,
// running kernels of the model.
//
// One forward pass ("step"):
//   Begin(rows)            makes room for the new rows, starts cold fetches
//   for each layer l:
//     PrepareLayer(l)      targets for the new rows, runs for attention; waits
//                          for the layer's cold rows (late ones are counted)
//     ... the engine enqueues AppendRows and Attention on the stream; before
//         that SendQueries(l) when the view asks for it (pushdown) ...
//   (the engine synchronises the stream)
//   Commit() or Discard()  Commit checks mapped pages and leases again; on
//                          ABORTED the step must be repeated from Begin
// Commit seals full pages, starts their stores, adds the step's scores,
// destroys the rows and applies the placement plan that are due. Destroying may
// wait for cold rows, two fetch timeouts at most for a layer that does not
// come.
//
// Thread-compatible: one engine thread calls it. Background threads (stores,
// control calls, heartbeats) are inside.
#ifndef FARKV_GPU_WORKER_TIERING_KV_CACHE_H_
#define FARKV_GPU_WORKER_TIERING_KV_CACHE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/kv_geometry.h"
#include "common/policy/destruction_event.h"
#include "common/policy/selection.h"
#include "common/transport/transport.h"
#include "gpu_worker/tiering/decision_log.h"
#include "gpu_worker/tiering/eviction_record.h"
#include "gpu_worker/tiering/tiering_options.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/stream.h"

namespace farkv {

using SequenceId = StrongId<struct SequenceIdTag>;

struct SequenceSpec {
  SessionId session;
  std::string request_id;       // for people
  int64_t prompt_tokens = 0;    // at least 1
  int64_t max_tokens = 0;       // prompt and every token that may follow
  PlacementSettings placement;  // granularity must equal the worker's
  // Of the tokens outside T0, 1/10,000: TieringOptions::t2_ratio at most, and
  // that where it is not set.
  std::optional<int32_t> t2_ratio;
  // Which rows may be destroyed, and when; nullopt: none ever.
  std::optional<DestructionSettings> destruction;
  uint64_t destruction_seed = 0;  // of its draws, beside the request id
  // Which rows a decode step reads, in groups that divide a page.
  SelectionSettings selection;
  // In place of Quest's bounds, when `selection` has a policy: asked on the
  // engine's thread, with the sequence's id as the request.
  GroupScorer group_scorer;
  // Radians per position of each pair of a head. Not empty: whenever rows are
  // destroyed, the keys that are left in a head are turned to count on from 0;
  // the caller rotates new rows for num_tokens_left(). Only without nodes.
  std::vector<double> compact_frequencies;
};

// New rows of one sequence in this step: its next `num_rows` positions, or the
// first ones of those that GiveUpLostRows() has returned while some are left.
struct StepRows {
  SequenceId sequence;
  int32_t num_rows = 0;
};

// What one layer of a step needs; borrowed until the next PrepareLayer,
// Commit or Discard - and, on an asynchronous stream, until synchronised.
struct LayerView {
  std::span<const RowTarget> targets;  // one per row of the step
  // One per StepRows, or one per range of lost positions.
  std::span<const AttentionSequence> sequences;
  // Nodes attend to some of the layer's pages, a policy ranks rows by these
  // queries, or they choose the rows that are read (only then are `sequences`
  // whole): SendQueries() must come before its attention is enqueued.
  bool needs_queries = false;
};

// Figures of one sequence, for the usage block and the CLI.
struct SequenceTierStats {
  int64_t t0_tokens = 0, t1_tokens = 0, t2_tokens = 0, t3_tokens = 0;
  int64_t t0_peak_bytes = 0, staging_peak_bytes = 0;
  int64_t stored_pages = 0, stored_bytes = 0;
  int64_t compressed_pages = 0;  // whose rows are read as T2 since
  int64_t promoted_tokens = 0, demoted_tokens = 0;
  // Tokens that a placement plan wanted back in T0 and the next one out again.
  int64_t undone_promotions = 0;
  // Of t0_tokens, those that came back from T2: their rows are as rounded.
  int64_t lossy_tokens = 0;
  int64_t cold_rows_mapped = 0, cold_rows_fetched = 0;
  int64_t cold_rows_pushed_down = 0, cold_bytes_fetched = 0;
  int64_t late_fetches = 0;  // layers of steps that waited for fetched rows
  int64_t plans = 0, deferred_drops = 0;
  int64_t recomputed_tokens = 0;
  int64_t lost_score_collections = 0;  // answers of nodes that did not come
  // Rows that no longer exist, all layers and KV heads; t3_tokens are those
  // that are gone in every one of them.
  int64_t destroyed_rows = 0;
  // Also by a life before a Restart: tokens may have been chosen without them.
  bool rows_were_destroyed = false;
  int64_t evictions = 0;            // events that destroyed rows
  int64_t postponed_evictions = 0;  // events whose rows came late
  int64_t skipped_evictions = 0;    // events that were given up
  int64_t node_evictions = 0;       // events whose rows nodes ranked
  int64_t failed_plans = 0;         // placement plans that were not made
  // Groups of rows that selection has read and passed over, summed over steps,
  // layers that select, and KV heads.
  int64_t selected_groups = 0, skipped_groups = 0;
  int64_t broken_scores = 0;  // rows that stayed because one was not finite
  // Tokens that a head has lost as a share of those generated (ALGORITHMS
  // 1.3): at the end, and averaged over the steps.
  double destroyed_share = 0, destroyed_share_average = 0;
  uint64_t evictions_digest = 0;  // of all decisions so far, in order
  std::map<std::string, int64_t> cold_rows_by_node;  // by node id
  std::string cold_mode;  // what the last cold read used; "none" before it
};

// Tiers of one page's positions; layers share one decision.
struct PageTierMap {
  int32_t page_index = 0;
  std::vector<Tier> tiers;  // one per position that exists
  bool stored = false;
  std::string node_id;  // empty while it is not stored
};

struct T0Usage {
  uint64_t capacity_bytes = 0, used_bytes = 0, line_bytes = 0;
  uint64_t staging_bytes = 0;
};

struct PeerStats {
  std::string id, address, transport;  // "map", "rdma" or "tcp"
  bool healthy = false;
  Epoch epoch;
  TransportCounters transfers;
  // Requests that the transport took from the link, and calls of their
  // callbacks: as many once all is quiet.
  uint64_t requests_sent = 0, requests_answered = 0;
  // Faults that were noticed and answered: DATA_LOSS of an answer (a checksum,
  // a wrong page or row), fetches sent a second time, fetches that failed for
  // good, pages whose store failed and is tried again.
  uint64_t damaged_answers = 0, repeated_fetches = 0;
  uint64_t failed_fetches = 0, failed_stores = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  absl::Duration last_heartbeat;
  // As measured; 0 where nothing has been (node_rates.h).
  double link_bytes_per_second = 0, attend_rows_per_second = 0;
  absl::Duration round_trip;
  // How its cold rows are read at present, and why (cold_mode.h).
  std::string cold_mode, cold_reason;
};

struct NodeAccess;

class KvCache {
 public:
  // Connects to the nodes of `options` (unreachable ones are an error naming
  // the address; protocol, page format, geometry and - under bitwise
  // exactness - kernel target must agree). `device` must outlive the cache.
  static absl::StatusOr<std::unique_ptr<KvCache>> Create(
      const TieringOptions& options, const KvGeometry& geometry,
      int num_query_heads, Device& device);
  // The same with a way of its own to reach the nodes: tests put theirs here.
  static absl::StatusOr<std::unique_ptr<KvCache>> CreateWith(
      const TieringOptions& options, const KvGeometry& geometry,
      int num_query_heads, Device& device, const NodeAccess& access);
  // Ends open sequences, as Close does, and waits for their sessions.
  ~KvCache();

  // Admits a sequence when its T0 share fits. RESOURCE_EXHAUSTED: try again
  // when another sequence has closed. UNAVAILABLE: all nodes are lost, and T0
  // cannot hold it whole beside the others. INVALID_ARGUMENT: can never fit;
  // names tokens, bytes needed and bytes there.
  absl::StatusOr<SequenceId> Open(const SequenceSpec& spec);
  // Whether `count` sequences like it would be opened now, and nothing else;
  // errors as Open.
  absl::Status CheckRoom(const SequenceSpec& spec, int64_t count) const;
  // Returns its lines now and its sessions in the background.
  void Close(SequenceId sequence);
  // Gives up every row of a sequence, as Close does, and keeps its share and
  // what its figures have counted: its tokens come again, from the first one
  // on, under the id that is returned and in sessions of their own. Nodes that
  // answered and yet gave no good rows are its last choice from then on.
  SequenceId Restart(SequenceId sequence, SessionId session);
  // Gives up the rows that exist nowhere any more, as the last step has shown,
  // and those given up before, and returns their positions, ascending. The next
  // steps' rows of the sequence are theirs, in this order, until all are there
  // again; nothing else of the sequence changes (lost_rows.h). Empty: no row is
  // known to be lost, or these alone cannot be computed again; Restart helps.
  // May wait, two fetch timeouts, for scores that nodes have gathered.
  std::vector<int64_t> GiveUpLostRows(SequenceId sequence);

  // RESOURCE_EXHAUSTED, at once, when T0 overflows: Park another sequence, or
  // WaitForRoom and try again, or end one. OUT_OF_RANGE, with the bytes, when
  // one layer's cold rows are more than may be fetched from a node at a time:
  // run the sequences in two steps. Either way no step has begun.
  absl::Status Begin(std::span<const StepRows> rows, Stream& stream);
  // Waits, `timeout` at most, for what may let lines go: a store or call that
  // ends (or has since Begin), one that failed and is due again, a lost node
  // that is back. False at once when nothing is to come. Not within a step.
  bool WaitForRoom(absl::Duration timeout);
  // Waits for any news of the nodes, `timeout` at most; likewise.
  void WaitForNodes(absl::Duration timeout);
  // UNAVAILABLE when cold rows are lost: see failed_sequences();
  // FAILED_PRECONDITION when there is no room to receive them; the step must be
  // discarded. ABORTED when a node did not attend: discard the step and repeat
  // it.
  absl::StatusOr<LayerView> PrepareLayer(int layer);
  // The layer's rotated queries, f32 [rows][query heads][head_dim], host
  // memory, read before return; `scale` as attention applies it. Where they
  // choose rows, waits for the cold ones; errors as PrepareLayer.
  absl::Status SendQueries(int layer, const float* queries, float scale);
  // ABORTED: the step has been discarded and must be repeated from Begin.
  // `is_moot` is asked between the layers of an event that destroys rows, which
  // stays pending once it says that nobody wants what comes.
  absl::Status Commit(const std::function<bool()>& is_moot = {});
  // Ends the step; the rows that Begin added are gone. Nothing without one.
  void Discard();
  // Whose cold rows failed the last PrepareLayer or SendQueries:
  // GiveUpLostRows or Restart them, or end them. The others can go on.
  const std::vector<SequenceId>& failed_sequences() const;

  // Drops every line that is stored. The sequence may run again any time.
  void Park(SequenceId sequence);

  SequenceTierStats Stats(SequenceId sequence) const;
  std::vector<PageTierMap> TierMap(SequenceId sequence) const;
  // The last kMaxEvictionRecords events, oldest first.
  std::vector<EvictionRecord> Evictions(SequenceId sequence) const;
  // Of all sequences, those that have ended included; newest first.
  std::vector<LoggedEviction> Decisions(const DecisionQuery& query) const;
  std::vector<PageLiveRows> LiveRows(SequenceId sequence) const;
  // Positions with a row in some layer and KV head, ascending.
  std::vector<int64_t> LivePositions(SequenceId sequence) const;
  // Cumulative attention per position, fixed point 2^-40. Waits for what nodes
  // have gathered; not during a step.
  std::vector<int64_t> Scores(SequenceId sequence);
  // Layers that waited for fetched rows, once in each step, of all sequences
  // ever.
  int64_t late_layers() const;
  // Moved into T0, of all sequences ever.
  int64_t promoted_tokens() const;
  T0Usage t0_usage() const;
  // These two may be called from any thread.
  uint64_t staging_bytes() const;
  std::vector<PeerStats> Peers() const;
  int64_t num_tokens(SequenceId sequence) const;
  // Those whose rows are left in each layer and KV head.
  int64_t num_tokens_left(SequenceId sequence) const;
  // T0 that the sequence was promised and does not hold; negative while it
  // holds more, because pages that should leave are not stored yet.
  int64_t ShareBytesLeft(SequenceId sequence) const;

  // Waits until no store, control call or close is under way, or `timeout`.
  absl::Status Drain(absl::Duration timeout);

 private:
  struct Impl;
  explicit KvCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_KV_CACHE_H_
