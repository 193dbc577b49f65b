#include "gpu_worker/engine/engine_loop.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

constexpr absl::Duration kCloseGrace = absl::Seconds(5);

// Rows of a step whose logits give log probabilities of prompts: 20 MB for a
// vocabulary of 150,000. More of them make no step faster by much.
constexpr int32_t kPromptLogitRows = 32;

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
                       .logit_rows = o.max_sequences + kPromptLogitRows},
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
    waiting.stream->FinishAll(end);
  }
  for (auto& sequence : running_) {
    End(*sequence, sequence->MakeEnd(FinishReason::kCancelled));
  }
  running_.clear();
  PublishLoad();
  // What cannot be closed in time, the nodes free when its lease ends.
  cache_->Drain(kCloseGrace).IgnoreError();
}

void Engine::Loop::EndExpired() {
  const absl::Time now = absl::Now();
  for (WaitingRequest& waiting : queue_.PopExpired(now)) {
    GenerationEnd end;
    end.reason = waiting.stream->cancelled() ? FinishReason::kCancelled
                                             : FinishReason::kDeadline;
    end.prompt_tokens = static_cast<int64_t>(waiting.request.prompt.size());
    queue_.Forget(waiting.request.request_id);
    waiting.stream->FinishAll(end);
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
  // First, so that whoever has seen the end may use the id again.
  if (sequence.stream().outputs_left() == 1) {
    queue_.Forget(sequence.request().request_id);
  }
  sequence.stream().Finish(sequence.output(), sequence.FlushText(),
                           std::move(end));
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
