#include "gpu_worker/engine/engine.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "gpu_worker/engine/engine_loop.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv {
absl::Status EngineOptions::Validate() const {
  if (model.empty()) {
    return absl::InvalidArgumentError("--model is missing: a model directory");
  }
  FARKV_RETURN_IF_ERROR(CheckRange("--max-sequences", max_sequences, 1, 1024));
  FARKV_RETURN_IF_ERROR(CheckRange("--max-queue", max_queue, 1, 1 << 20));
  FARKV_RETURN_IF_ERROR(CheckRange("--threads", threads, 1, 1024));
  FARKV_RETURN_IF_ERROR(
      CheckRange("the prefill chunk", prefill_chunk, 1, 1 << 16));
  FARKV_RETURN_IF_ERROR(placement.Validate());
  if (destruction.has_value()) {
    FARKV_RETURN_IF_ERROR(destruction->Validate());
  }
  FARKV_RETURN_IF_ERROR(selection.Validate());
  if (placement.granularity != tiering.granularity) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--granularity is ", tiering.granularity, " for T0 lines and ",
        placement.granularity, " for placement; they must be equal"));
  }
  return tiering.Validate();
}

Engine::Engine(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Engine::~Engine() = default;
void Engine::Stop() { loop_->Stop(); }

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  const NodeAccess access = MakeNodeAccess(options.tiering);
  return CreateWith(std::move(options), access);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::CreateWith(
    EngineOptions options, const NodeAccess& access) {
  FARKV_ASSIGN_OR_RETURN(auto loop, Loop::Create(std::move(options), access));
  return std::unique_ptr<Engine>(new Engine(std::move(loop)));
}

absl::StatusOr<std::shared_ptr<GenerationStream>> Engine::Submit(
    GenerationRequest request) {
  const ModelConfig& config = model().config;
  FARKV_RETURN_IF_ERROR(
      request.Validate(config.vocab_size, config.max_position));
  FARKV_RETURN_IF_ERROR(CheckRange("sampling.n", request.num_outputs, 1,
                                   options().max_sequences));
  const auto& destruction = request.destruction.has_value()
                                ? request.destruction
                                : options().destruction;
  if (destruction.has_value() && !request.destroy_nothing) {
    FARKV_RETURN_IF_ERROR(destruction->Validate());
    FARKV_RETURN_IF_ERROR(destruction->ValidateRequest(
        static_cast<int64_t>(request.prompt.size())));
  }
  if (request.selection.has_value()) {
    FARKV_RETURN_IF_ERROR(request.selection->Validate());
  }
  return loop_->queue().Push(std::move(request), Clock::Boottime().Now());
}

bool Engine::Abort(const std::string& request_id) {
  return loop_->queue().Abort(request_id);
}

void Engine::SetDraining(bool draining) {
  loop_->queue().SetDraining(draining);
}

bool Engine::WaitIdle(absl::Duration timeout) {
  return loop_->queue().WaitIdle(timeout);
}

EngineLoad Engine::Load() const {
  EngineLoad load = loop_->Load();
  load.waiting = loop_->queue().num_waiting();
  load.draining = loop_->queue().draining();
  return load;
}

std::vector<PeerStats> Engine::Peers() const { return loop_->Peers(); }

absl::Status Engine::Ask(
    std::function<void(const EngineView&)> question) const {
  return loop_->queue().Ask([question = std::move(question),
                             loop = loop_.get()] { question(*loop); });
}

absl::StatusOr<uint64_t> Engine::WatchLeft(RequestQueue::Watcher watcher) {
  return loop_->queue().Watch(std::move(watcher));
}

void Engine::Unwatch(uint64_t id) { loop_->queue().Unwatch(id); }

const Model& Engine::model() const { return loop_->model(); }
const EngineOptions& Engine::options() const { return loop_->options(); }

EngineLoad Engine::Loop::Load() const {
  const uint64_t staging = cache_->staging_bytes();
  absl::MutexLock lock(&load_mutex_);
  EngineLoad load = load_;
  load.t0.staging_bytes = staging;
  return load;
}

void Engine::Loop::PublishLoad() {
  EngineLoad load;
  load.running = static_cast<int>(running_.size());
  load.t0 = cache_->t0_usage();
  absl::MutexLock lock(&load_mutex_);
  load_ = load;
}

std::vector<SequenceInfo> Engine::Loop::Sequences() const {
  std::vector<SequenceInfo> infos;
  const absl::Time now = absl::Now();
  for (const auto& sequence : running_) {
    SequenceInfo info;
    info.request_id = sequence->request().request_id;
    info.session = sequence->session();
    info.state = sequence->parked         ? "parked"
                 : sequence->replaying()  ? "recompute"
                 : sequence->prefilling() ? "prefill"
                                          : "decode";
    info.prompt_tokens =
        static_cast<int64_t>(sequence->request().prompt.size());
    info.generated_tokens = sequence->generated();
    info.age = now - sequence->admitted();
    info.tiers = cache_->Stats(sequence->id);
    info.tiers.recomputed_tokens = sequence->recomputed();
    infos.push_back(std::move(info));
  }
  queue_.ForEachWaiting([&](const WaitingRequest& waiting) {
    SequenceInfo info;
    info.request_id = waiting.request.request_id;
    info.state = "waiting";
    info.prompt_tokens = static_cast<int64_t>(waiting.request.prompt.size());
    info.age = Clock::Boottime().Now() - waiting.queued;
    infos.push_back(std::move(info));
  });
  return infos;
}

absl::StatusOr<SequenceId> Engine::Loop::FindRunning(
    const std::string& request_id) const {
  for (const auto& sequence : running_) {
    if (sequence->request().request_id == request_id) return sequence->id;
  }
  return absl::NotFoundError(
      absl::StrCat("no running sequence has request id \"", request_id, "\""));
}

absl::StatusOr<std::vector<PageTierMap>> Engine::Loop::TierMap(
    const std::string& request_id) const {
  FARKV_ASSIGN_OR_RETURN(const SequenceId id, FindRunning(request_id));
  return cache_->TierMap(id);
}

absl::StatusOr<std::vector<int64_t>> Engine::Loop::LivePositions(
    const std::string& request_id) const {
  FARKV_ASSIGN_OR_RETURN(const SequenceId id, FindRunning(request_id));
  return cache_->LivePositions(id);
}

absl::StatusOr<std::vector<EvictionRecord>> Engine::Loop::Evictions(
    const std::string& request_id) const {
  FARKV_ASSIGN_OR_RETURN(const SequenceId id, FindRunning(request_id));
  return cache_->Evictions(id);
}

}  // namespace farkv
