// The inside of KvCache, shared by the files that implement it. Not for use
// elsewhere. Engine thread only.
#ifndef FARKV_GPU_WORKER_TIERING_KV_CACHE_IMPL_H_
#define FARKV_GPU_WORKER_TIERING_KV_CACHE_IMPL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "gpu_worker/tiering/cold_reads.h"
#include "gpu_worker/tiering/decision_log.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tiering/node_decisions.h"
#include "gpu_worker/tiering/pushdown.h"
#include "gpu_worker/tiering/remote_tier.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/step.h"
#include "gpu_worker/tiering/t0_lines.h"

namespace farkv {

struct KvCache::Impl {
  Impl(const TieringOptions& tiering_options, const KvGeometry& kv_geometry,
       int query_heads, T0Lines t0_lines)
      : options(tiering_options),
        geometry(kv_geometry),
        num_query_heads(query_heads),
        lines(std::move(t0_lines)),
        step(kv_geometry) {}
  ~Impl();

  Sequence* Find(SequenceId id) const {
    auto it = sequences.find(id);
    return it == sequences.end() ? nullptr : it->second.get();
  }
  absl::Status CheckSpec(const SequenceSpec& spec) const;
  absl::Status CheckFitsWithoutNodes(const SequenceSpec& spec,
                                     int64_t count) const;
  absl::Status CheckRoom(const SequenceSpec& spec, int64_t count) const;
  absl::StatusOr<SequenceId> Open(const SequenceSpec& spec);
  absl::Status CheckRows(std::span<const StepRows> rows);
  absl::Status Begin(std::span<const StepRows> rows, Stream& on);
  bool MakeRoom(int64_t sets);
  void Advance();
  bool WaitForRoom(absl::Duration timeout);
  void WaitForNodes(absl::Duration timeout);
  std::string AboutNodes() const;
  void DropUnusedReads();
  absl::StatusOr<LayerView> PrepareLayer(int layer);
  absl::Status Commit(const std::function<bool()>& is_moot);
  void DestroyRows(Sequence& sequence, const std::function<bool()>& is_moot);
  absl::Status SendQueries(int layer, const float* queries, float scale);
  void NotePlan(Sequence& sequence, const absl::Status& plan);
  void Discard();
  void Close(SequenceId id);
  SequenceId Restart(SequenceId id, SessionId session);
  std::vector<int64_t> GiveUpLostRows(SequenceId id);
  void Park(SequenceId id);
  absl::Status Drain(absl::Duration timeout);

  TieringOptions options;
  KvGeometry geometry;
  int num_query_heads;
  T0Lines lines;
  Step step;
  Stream* stream = nullptr;  // of the step
  const Clock* clock = &Clock::Boottime();
  uint64_t last_sequence_id = 0;
  int64_t promoted_tokens = 0;  // of all sequences ever
  std::vector<SequenceId> failed;
  bool plan_failure_logged = false;
  DecisionLog decisions;
  SequenceMap sequences;
  // All null without memory nodes. Fetches that are under way count in reads
  // until remote has ended them, so it goes first.
  std::unique_ptr<ColdReads> reads;
  std::unique_ptr<Pushdown> pushdown;
  std::unique_ptr<NodeDecisions> node_decisions;
  std::unique_ptr<RemoteTier> remote;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_KV_CACHE_IMPL_H_
