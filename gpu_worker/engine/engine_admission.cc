// Who may run: the oldest request for whose outputs all there is room.
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "gpu_worker/engine/engine_loop.h"
#include "gpu_worker/model/rope.h"

namespace farkv {
namespace {

// How long an engine in which nothing runs waits at once for a lost node.
constexpr absl::Duration kNodeWait = absl::Milliseconds(20);

}  // namespace

void Engine::Loop::Admit() {
  const auto limit = static_cast<size_t>(options_.max_sequences);
  while (running_.size() < limit) {
    std::optional<WaitingRequest> waiting = queue_.Pop();
    if (!waiting.has_value()) return;
    const auto outputs = static_cast<size_t>(waiting->request.num_outputs);
    // All outputs or none, and nobody overtakes.
    if (running_.size() + outputs > limit) {
      return queue_.PutBack(*std::move(waiting));
    }
    if (!AdmitOne(*std::move(waiting))) return;
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

// Events that destroy rows come after single steps, and must come again; a row
// that chooses what it reads is alone.
int64_t Engine::Loop::ReplayRows(const SequenceSpec& spec) const {
  const bool one_by_one = spec.destruction.has_value() ||
                          spec.selection.policy != SelectionPolicy::kNone;
  return one_by_one ? 1 : spec.placement.interval;
}

// A sequence for each output, or none of them.
absl::Status Engine::Loop::OpenOutputs(
    const WaitingRequest& waiting,
    std::vector<std::unique_ptr<RunningSequence>>& opened) {
  const int32_t outputs = waiting.request.num_outputs;
  // Before any is opened: while they wait, opening and closing them anew would
  // keep the nodes busy.
  if (outputs > 1) {
    FARKV_RETURN_IF_ERROR(
        cache_->CheckRoom(MakeSpec(waiting.request), outputs));
  }
  const absl::Time now = absl::Now();
  for (int32_t i = 0; i < outputs; ++i) {
    GenerationRequest request = waiting.request;
    request.sampling.seed += static_cast<uint64_t>(i);
    const SequenceSpec spec = MakeSpec(request);
    const absl::StatusOr<SequenceId> id = cache_->Open(spec);
    if (!id.ok()) {
      for (const auto& sequence : opened) cache_->Close(sequence->id);
      opened.clear();
      if (outputs == 1) return id.status();
      return absl::Status(
          id.status().code(),
          absl::StrCat(id.status().message(), "; this is output ", i, " of ",
                       outputs, ", which are admitted together"));
    }
    opened.push_back(std::make_unique<RunningSequence>(
        std::move(request), i, waiting.stream, spec.session, now));
    opened.back()->SetThoughts(model_.thoughts);
    opened.back()->id = *id;
    opened.back()->replay_rows = ReplayRows(spec);
  }
  return absl::OkStatus();
}

void Engine::Loop::Refuse(WaitingRequest waiting, const absl::Status& why) {
  GenerationEnd end;
  end.reason = FinishReason::kError;
  end.error = why;
  end.prompt_tokens = static_cast<int64_t>(waiting.request.prompt.size());
  end.seed = waiting.request.sampling.seed;
  metrics_.failures.Count(why.code());
  queue_.Forget(waiting.request.request_id);
  waiting.stream->FinishAll(end);
}

// False when it has to wait for T0.
bool Engine::Loop::AdmitOne(WaitingRequest waiting) {
  std::vector<std::unique_ptr<RunningSequence>> opened;
  const absl::Status status = OpenOutputs(waiting, opened);
  if (MayWait(waiting, status)) {
    queue_.PutBack(std::move(waiting));
    // Nothing else makes the loop wait.
    if (running_.empty()) cache_->WaitForNodes(kNodeWait);
    return false;
  }
  if (!status.ok()) {
    Refuse(std::move(waiting), status);
    return true;
  }
  metrics_.requests.Increment();
  metrics_.queue_seconds.Observe(
      absl::ToDoubleSeconds(Clock::Boottime().Now() - waiting.queued));
  std::move(opened.begin(), opened.end(), std::back_inserter(running_));
  return true;
}

}  // namespace farkv
