// The engine's thread: admission, steps, ends. See engine.h.
#ifndef FARKV_GPU_WORKER_ENGINE_ENGINE_LOOP_H_
#define FARKV_GPU_WORKER_ENGINE_ENGINE_LOOP_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "gpu_worker/engine/engine.h"
#include "gpu_worker/engine/engine_metrics.h"
#include "gpu_worker/engine/running_sequence.h"
#include "gpu_worker/model/decoder.h"

namespace farkv {

class Engine::Loop final : public EngineView {
 public:
  static absl::StatusOr<std::unique_ptr<Loop>> Create(EngineOptions options,
                                                      const NodeAccess& access);
  ~Loop() override;
  void Stop();

  RequestQueue& queue() { return queue_; }
  const EngineOptions& options() const { return options_; }
  const Model& model() const { return model_; }

  EngineLoad Load() const;
  std::vector<PeerStats> Peers() const { return cache_->Peers(); }
  // On the engine's thread only.
  std::vector<SequenceInfo> Sequences() const override;
  absl::StatusOr<std::vector<PageTierMap>> TierMap(
      const std::string& request_id) const override;
  absl::StatusOr<std::vector<int64_t>> LivePositions(
      const std::string& request_id) const override;
  absl::StatusOr<std::vector<EvictionRecord>> Evictions(
      const std::string& request_id) const override;
  std::vector<LoggedEviction> Decisions(
      const DecisionQuery& query) const override {
    return cache_->Decisions(query);
  }

 private:
  using Batch = std::vector<RunningSequence*>;

  explicit Loop(EngineOptions options);
  void Run();
  void PublishLoad();
  void Admit();
  bool AdmitOne(WaitingRequest waiting);
  absl::Status OpenOutputs(
      const WaitingRequest& waiting,
      std::vector<std::unique_ptr<RunningSequence>>& opened);
  void Refuse(WaitingRequest waiting, const absl::Status& why);
  bool MayWait(const WaitingRequest& waiting, const absl::Status& why) const;
  std::optional<DestructionSettings> DestructionOf(
      const GenerationRequest& request) const;
  SequenceSpec MakeSpec(const GenerationRequest& request) const;
  int64_t ReplayRows(const SequenceSpec& spec) const;
  void CountTiers(const SequenceTierStats& tiers, const std::string& policy);
  absl::StatusOr<SequenceId> FindRunning(const std::string& request_id) const;
  void EndExpired();
  void StepOnce();
  int64_t NextPosition(const RunningSequence& sequence) const;
  // One forward pass over `batch`; ABORTED ones are repeated.
  absl::Status Step(const Batch& batch);
  absl::Status TryStep(const Batch& batch);
  // Nobody wants what the step gives: all are cancelled or late, or the engine
  // stops. A slow node may make a step take minutes.
  bool IsMoot(const Batch& batch) const;
  bool MendNamed(Batch& batch, const absl::Status& why);
  void Mend(RunningSequence& sequence, const absl::Status& why);
  void Recover(RunningSequence& sequence, const absl::Status& why);
  bool MayReplayInPlace(const RunningSequence& sequence) const;
  void Replay(RunningSequence& sequence, const absl::Status& why);
  // `is_all`: nobody outside `batch` has lines that could be dropped for it.
  void RunBatch(Batch batch, bool is_all);
  void RunHalves(const Batch& batch);
  void RunAlone(const Batch& batch);
  void Unpark();
  void Park(RunningSequence& sequence);
  void MakeRoom(Batch& batch);
  void WaitForRoom(RunningSequence& alone, const absl::Status& why);
  bool GiveUpParked(const absl::Status& why);
  void CountColdWork();
  void Deliver(const Batch& batch, std::span<const int64_t> rows);
  void ChooseToken(RunningSequence& sequence, std::span<float> logits);
  void End(RunningSequence& sequence, GenerationEnd end);
  void Fail(RunningSequence& sequence, const absl::Status& why);
  void RemoveEnded();

  EngineOptions options_;
  // In construction order: each may use those above it.
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  Model model_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
  EngineMetrics metrics_;
  RequestQueue queue_;
  std::vector<std::unique_ptr<RunningSequence>> running_;
  // When T0 became too small for a step that nobody can make room for.
  absl::Time full_since_ = absl::InfiniteFuture();
  int64_t steps_ = 0;  // that were committed
  int64_t late_layers_counted_ = 0, promoted_tokens_counted_ = 0;
  bool gave_up_ = false;  // the last step, between two layers
  std::vector<float> logits_;
  mutable absl::Mutex load_mutex_;
  EngineLoad load_ ABSL_GUARDED_BY(load_mutex_);
  std::thread thread_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_ENGINE_LOOP_H_
