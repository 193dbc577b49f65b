#include "gpu_worker/engine/engine_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/rope.h"

namespace farkv {
namespace {

constexpr absl::Duration kCloseGrace = absl::Seconds(5);

// How long an engine in which nothing runs waits at once for a lost node.
constexpr absl::Duration kNodeWait = absl::Milliseconds(20);

}  // namespace

Engine::Loop::Loop(EngineOptions options)
    : options_(std::move(options)),
      pool_(options_.threads),
      metrics_(EngineMetrics::Register(options_.metrics)),
      queue_(options_.max_queue) {}

absl::StatusOr<std::unique_ptr<Engine::Loop>> Engine::Loop::Create(
    EngineOptions options, const NodeAccess& access) {
  FARKV_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<Loop> loop(new Loop(std::move(options)));
  const EngineOptions& o = loop->options_;
  FARKV_ASSIGN_OR_RETURN(loop->device_, OpenDevice(o.device, loop->pool_));
  loop->stream_ = loop->device_->NewStream();
  FARKV_ASSIGN_OR_RETURN(loop->model_, Model::Load(o.model, *loop->device_));
  const ModelConfig& config = loop->model_.config;
  if (o.positions == PositionMode::kCompact &&
      config.rope_scaling.kind == RopeScaling::Kind::kDynamic) {
    return absl::InvalidArgumentError(
        "compact positions do not go with this model's dynamic rotary scaling, "
        "whose frequencies change with the position");
  }
  FARKV_ASSIGN_OR_RETURN(
      Decoder decoder,
      Decoder::Create(config, loop->model_.weights, o.kv_dtype,
                      {.rows = std::max(o.prefill_chunk, o.max_sequences),
                       .logit_rows = o.max_sequences},
                      *loop->device_));
  loop->decoder_ = std::make_unique<Decoder>(std::move(decoder));
  if (o.before_nodes) o.before_nodes();
  FARKV_ASSIGN_OR_RETURN(
      loop->cache_,
      KvCache::CreateWith(o.tiering, config.Geometry(o.kv_dtype),
                          config.num_query_heads, *loop->device_, access));
  loop->PublishLoad();
  loop->thread_ = std::thread([raw = loop.get()] { raw->Run(); });
  return loop;
}

Engine::Loop::~Loop() { Stop(); }

void Engine::Loop::Stop() {
  queue_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Engine::Loop::Run() {
  while (queue_.WaitForWork(!running_.empty())) {
    queue_.AnswerQuestions();
    EndExpired();
    Admit();
    PublishLoad();
    StepOnce();
    RemoveEnded();
    PublishLoad();
  }
  queue_.AnswerQuestions();
  for (WaitingRequest& waiting : queue_.StopAndPopAll()) {
    GenerationEnd end;
    end.reason = FinishReason::kCancelled;
    waiting.stream->Finish("", std::move(end));
  }
  for (auto& sequence : running_) {
    End(*sequence, sequence->MakeEnd(FinishReason::kCancelled));
  }
  running_.clear();
  PublishLoad();
  // What cannot be closed in time, the nodes free when its lease ends.
  cache_->Drain(kCloseGrace).IgnoreError();
}

void Engine::Loop::Admit() {
  while (static_cast<int>(running_.size()) < options_.max_sequences) {
    std::optional<WaitingRequest> waiting = queue_.Pop();
    if (!waiting.has_value() || !AdmitOne(*std::move(waiting))) return;
  }
}

std::optional<DestructionSettings> Engine::Loop::DestructionOf(
    const GenerationRequest& request) const {
  if (request.destroy_nothing) return std::nullopt;
  return request.destruction.has_value() ? request.destruction
                                         : options_.destruction;
}

SequenceSpec Engine::Loop::MakeSpec(const GenerationRequest& request) const {
  SequenceSpec spec;
  spec.session = SessionId::Random();
  spec.request_id = request.request_id;
  spec.prompt_tokens = static_cast<int64_t>(request.prompt.size());
  spec.max_tokens = spec.prompt_tokens + request.max_new_tokens;
  spec.placement = options_.placement;
  if (request.hbm_ratio.has_value()) {
    spec.placement.hbm_ratio = *request.hbm_ratio;
  }
  spec.placement.policy = request.placement.value_or(options_.placement.policy);
  spec.t2_ratio = request.t2_ratio;
  spec.destruction = DestructionOf(request);
  spec.destruction_seed = request.sampling.seed;
  spec.selection = request.selection.value_or(options_.selection);
  spec.group_scorer = options_.group_scorer;
  if (options_.positions == PositionMode::kCompact) {
    const ModelConfig& config = model_.config;
    spec.compact_frequencies = RopeFrequencies(
        config.rope_theta, config.head_dim, config.rope_scaling, 0);
  }
  return spec;
}

// For others to end, or for a lost node to come back: not for ever, because
// whoever is behind it waits as well.
bool Engine::Loop::MayWait(const WaitingRequest& waiting,
                           const absl::Status& why) const {
  if (absl::IsResourceExhausted(why)) return !running_.empty();
  return absl::IsUnavailable(why) && Clock::Boottime().Now() - waiting.queued <
                                         2 * options_.tiering.rpc_timeout;
}

// False when it has to wait for T0.
bool Engine::Loop::AdmitOne(WaitingRequest waiting) {
  const SequenceSpec spec = MakeSpec(waiting.request);
  absl::StatusOr<SequenceId> id = cache_->Open(spec);
  if (MayWait(waiting, id.status())) {
    queue_.PutBack(std::move(waiting));
    // Nothing else makes the loop wait.
    if (running_.empty()) cache_->WaitForNodes(kNodeWait);
    return false;
  }
  const absl::Time now = absl::Now();
  auto sequence = std::make_unique<RunningSequence>(
      std::move(waiting.request), std::move(waiting.stream), spec.session, now);
  if (!id.ok()) {
    GenerationEnd end = sequence->MakeEnd(FinishReason::kError);
    end.error = id.status();
    metrics_.failures.Count(id.status().code());
    queue_.Forget(sequence->request().request_id);
    sequence->stream().Finish("", std::move(end));
    return true;
  }
  sequence->id = *id;
  // Events that destroy rows come after single steps, and must come again; a
  // row that chooses what it reads is alone.
  const bool one_by_one = spec.destruction.has_value() ||
                          spec.selection.policy != SelectionPolicy::kNone;
  sequence->replay_rows = one_by_one ? 1 : spec.placement.interval;
  metrics_.requests.Increment();
  metrics_.queue_seconds.Observe(
      absl::ToDoubleSeconds(Clock::Boottime().Now() - waiting.queued));
  running_.push_back(std::move(sequence));
  return true;
}

void Engine::Loop::EndExpired() {
  const absl::Time now = absl::Now();
  for (WaitingRequest& waiting : queue_.PopExpired(now)) {
    GenerationEnd end;
    end.reason = waiting.stream->cancelled() ? FinishReason::kCancelled
                                             : FinishReason::kDeadline;
    end.prompt_tokens = static_cast<int64_t>(waiting.request.prompt.size());
    queue_.Forget(waiting.request.request_id);
    waiting.stream->Finish("", std::move(end));
  }
  for (auto& sequence : running_) {
    if (sequence->stream().cancelled()) {
      End(*sequence, sequence->MakeEnd(FinishReason::kCancelled));
    } else if (sequence->request().deadline <= now) {
      End(*sequence, sequence->MakeEnd(FinishReason::kDeadline));
    }
  }
  RemoveEnded();
}

void Engine::Loop::CountTiers(const SequenceTierStats& tiers,
                              const std::string& policy) {
  const auto add = [](Counter& counter, int64_t count) {
    counter.Increment(static_cast<double>(count));
  };
  add(metrics_.cold_rows_mapped, tiers.cold_rows_mapped);
  add(metrics_.cold_rows_fetched, tiers.cold_rows_fetched);
  add(metrics_.cold_rows_pushed_down, tiers.cold_rows_pushed_down);
  add(metrics_.undone_promotions, tiers.undone_promotions);
  add(metrics_.postponed_evictions, tiers.postponed_evictions);
  add(metrics_.skipped_evictions, tiers.skipped_evictions);
  add(metrics_.lost_score_collections, tiers.lost_score_collections);
  add(metrics_.failed_plans, tiers.failed_plans);
  add(metrics_.selected_groups, tiers.selected_groups);
  add(metrics_.skipped_groups, tiers.skipped_groups);
  const auto of_policy = metrics_.destruction.find(policy);
  if (of_policy == metrics_.destruction.end()) return;
  add(of_policy->second.rows, tiers.destroyed_rows);
  add(of_policy->second.events, tiers.evictions);
  add(of_policy->second.node_events, tiers.node_evictions);
}

void Engine::Loop::End(RunningSequence& sequence, GenerationEnd end) {
  end.tiers = cache_->Stats(sequence.id);
  end.tiers.recomputed_tokens = sequence.recomputed();
  const auto destruction = DestructionOf(sequence.request());
  CountTiers(end.tiers, destruction.has_value()
                            ? DestructionPolicyName(destruction->policy)
                            : "none");
  cache_->Close(sequence.id);
  sequence.ended = true;
  queue_.Forget(sequence.request().request_id);
  sequence.stream().Finish(sequence.FlushText(), std::move(end));
}

void Engine::Loop::Fail(RunningSequence& sequence, const absl::Status& why) {
  GenerationEnd end = sequence.MakeEnd(FinishReason::kError);
  end.error = why;
  metrics_.failures.Count(why.code());
  End(sequence, std::move(end));
}

void Engine::Loop::RemoveEnded() {
  std::erase_if(running_, [](const auto& sequence) { return sequence->ended; });
}

}  // namespace farkv
