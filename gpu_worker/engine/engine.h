// Continuous batching: admits requests, runs steps over all running sequences,
// sends tokens. One thread owns model, KV cache and sequences; callers only
// queue work and read streams.
//
// Goals: bounded queue with a clear refusal; a request's tokens do not depend
// on its company; a step that fails hurts only the sequences it must; rows that
// a memory node has lost are computed again from the tokens, with the same bits
// where nothing is compressed or destroyed. Non-goals here: priorities, prefix
// reuse.
//
// Thread-safe.
#ifndef FARKV_GPU_WORKER_ENGINE_ENGINE_H_
#define FARKV_GPU_WORKER_ENGINE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/engine/engine_options.h"
#include "gpu_worker/engine/generation.h"
#include "gpu_worker/engine/generation_stream.h"
#include "gpu_worker/engine/model.h"
#include "gpu_worker/engine/request_queue.h"

namespace farkv {

struct SequenceInfo {
  std::string request_id;
  SessionId session;
  // "waiting", "prefill", "decode", "recompute", "parked"
  std::string state;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  absl::Duration age;
  SequenceTierStats tiers;
};

// What only the engine's thread can tell; valid during the question that it is
// given to.
class EngineView {
 public:
  virtual ~EngineView() = default;
  virtual std::vector<SequenceInfo> Sequences() const = 0;
  // NOT_FOUND naming the request when none of that id is running.
  virtual absl::StatusOr<std::vector<PageTierMap>> TierMap(
      const std::string& request_id) const = 0;
  // Likewise: the positions that have a row in some layer and KV head, as the
  // next step will find them; and the last events that destroyed rows.
  virtual absl::StatusOr<std::vector<int64_t>> LivePositions(
      const std::string& request_id) const = 0;
  virtual absl::StatusOr<std::vector<EvictionRecord>> Evictions(
      const std::string& request_id) const = 0;
  // Events of all requests, those that have ended included; newest first.
  virtual std::vector<LoggedEviction> Decisions(
      const DecisionQuery& query) const = 0;
};

struct EngineLoad {
  int running = 0;
  int waiting = 0;
  bool draining = false;
  T0Usage t0;
};

class Engine {
 public:
  // Loads the model, connects to the nodes and starts the thread.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(EngineOptions options);
  // The same with a way of its own to reach the nodes, as KvCache::CreateWith.
  static absl::StatusOr<std::unique_ptr<Engine>> CreateWith(
      EngineOptions options, const NodeAccess& access);
  ~Engine();
  // Ends what runs with CANCELLED, closes every session and ends the thread.
  // The engine stays answerable and refuses everything. Idempotent.
  void Stop();

  // RESOURCE_EXHAUSTED when the queue is full (it counts requests, whatever
  // their outputs), INVALID_ARGUMENT for a bad
  // field, ALREADY_EXISTS for a running request id, UNAVAILABLE when draining.
  absl::StatusOr<std::shared_ptr<GenerationStream>> Submit(
      GenerationRequest request);
  // False when no such request runs or waits.
  bool Abort(const std::string& request_id);

  // Refuses new requests; the running ones go on.
  void SetDraining(bool draining);
  // True when nothing ran or waited within `timeout`.
  bool WaitIdle(absl::Duration timeout);

  // As after the last step; never blocks.
  EngineLoad Load() const;
  std::vector<PeerStats> Peers() const;
  // `question` runs once, on the engine's thread between two steps or when it
  // stops; Ask itself never blocks. UNAVAILABLE when the engine has stopped,
  // RESOURCE_EXHAUSTED when too many questions are open; then it does not run.
  absl::Status Ask(std::function<void(const EngineView&)> question) const;
  // Tells how many requests are left, now and whenever that changes; see
  // RequestQueue.
  absl::StatusOr<uint64_t> WatchLeft(RequestQueue::Watcher watcher);
  void Unwatch(uint64_t id);

  const Model& model() const;
  const EngineOptions& options() const;

 private:
  class Loop;
  explicit Engine(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_ENGINE_H_
