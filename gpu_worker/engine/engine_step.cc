// One forward pass of the engine: choosing rows and running them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "gpu_worker/engine/engine_loop.h"

namespace farkv {
namespace {

// A page given away in mid-step is rare; thrice in a row is a fault.
constexpr int kMaxRepeats = 3;

// How long a step that finds T0 full waits at once; cancels, deadlines and
// questions have to wait as well.
constexpr absl::Duration kRoomWait = absl::Milliseconds(20);

// Decoding sequences come first, one row each; what is left of the step goes
// to prompts and to tokens that are processed again, oldest first. Rows whose
// logits are wanted are `max_logit_rows` at most.
std::vector<int64_t> ChooseRows(const std::vector<RunningSequence*>& batch,
                                int64_t max_rows, int64_t max_logit_rows) {
  std::vector<int64_t> rows(batch.size(), 0);
  int64_t left = max_rows;
  // Beside one for each sequence.
  int64_t logits_left = max_logit_rows - static_cast<int64_t>(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i]->next_rows() > 1) continue;
    rows[i] = 1;
    --left;
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (rows[i] != 0) continue;
    rows[i] = std::clamp<int64_t>(batch[i]->next_rows(), 0, left);
    const int64_t more = batch[i]->logit_rows(rows[i]) - 1 - logits_left;
    if (more > 0) rows[i] -= more;
    logits_left -= std::max<int64_t>(0, batch[i]->logit_rows(rows[i]) - 1);
    left -= rows[i];
  }
  return rows;
}

// The rows of a step as the decoder takes them.
struct StepInput {
  std::vector<StepRows> rows;
  std::vector<int32_t> tokens;
  std::vector<int64_t> positions;
  std::vector<int32_t> logit_rows;
};

// Nothing is chosen behind rows that are computed again.
void AddLost(const RunningSequence& sequence, size_t rows, StepInput& input) {
  for (const int64_t position : sequence.lost().first(rows)) {
    input.tokens.push_back(sequence.token(position));
    input.positions.push_back(position);
  }
}

// `next_position` tells for which one a sequence's next row is rotated.
StepInput BuildInput(
    const std::vector<RunningSequence*>& batch, std::span<const int64_t> rows,
    absl::FunctionRef<int64_t(const RunningSequence&)> next_position) {
  StepInput input;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (rows[i] == 0) continue;
    const RunningSequence& sequence = *batch[i];
    const auto pending = sequence.pending();
    input.rows.push_back({sequence.id, static_cast<int32_t>(rows[i])});
    if (!sequence.lost().empty()) {
      AddLost(sequence, static_cast<size_t>(rows[i]), input);
      continue;
    }
    const int64_t first = next_position(sequence);
    for (int64_t r = 0; r < rows[i]; ++r) {
      input.tokens.push_back(pending[static_cast<size_t>(r)]);
      input.positions.push_back(first + r);
    }
    const auto end = static_cast<int32_t>(input.tokens.size());
    for (int64_t r = sequence.logit_rows(rows[i]); r > 0; --r) {
      input.logit_rows.push_back(end - static_cast<int32_t>(r));
    }
  }
  return input;
}

}  // namespace

// Parked sequences run again, the oldest first, when nobody who runs holds more
// than was promised and what was promised to all of them is free.
void Engine::Loop::Unpark() {
  const T0Usage t0 = cache_->t0_usage();
  auto free = static_cast<int64_t>(t0.capacity_bytes - t0.used_bytes);
  for (const auto& sequence : running_) {
    if (sequence->parked) continue;
    const int64_t left = cache_->ShareBytesLeft(sequence->id);
    if (left < 0) return;
    free -= left;
  }
  for (auto& sequence : running_) {
    if (!sequence->parked) continue;
    const int64_t left = cache_->ShareBytesLeft(sequence->id);
    if (left < 0) continue;  // its own stores come first
    if (left > free) return;
    free -= left;
    sequence->parked = false;
  }
}

void Engine::Loop::StepOnce() {
  Unpark();
  Batch batch;
  for (auto& sequence : running_) {
    if (!sequence->parked) batch.push_back(sequence.get());
  }
  if (batch.empty() && !running_.empty()) {
    running_.front()->parked = false;
    batch.push_back(running_.front().get());
  }
  RunBatch(std::move(batch), /*is_all=*/true);
}

// Each round takes at least one sequence out of the batch, tries one that is
// left row by row, or is the last.
void Engine::Loop::RunBatch(Batch batch, bool is_all) {
  while (!batch.empty()) {
    const absl::Status status = Step(batch);
    if (status.ok() || gave_up_) return;
    if (absl::IsOutOfRange(status) && batch.size() > 1) {
      return RunHalves(batch);
    }
    if (absl::IsOutOfRange(status) && batch.front()->lost().empty() &&
        batch.front()->next_rows() > 1) {
      batch.front()->one_row = true;
      continue;
    }
    if (absl::IsResourceExhausted(status)) {
      if (batch.size() == 1) {
        if (batch.front()->HalveLostRows()) continue;
        return is_all ? WaitForRoom(*batch.front(), status)
                      : Park(*batch.front());
      }
      MakeRoom(batch);
      continue;
    }
    if (batch.size() == 1) return Mend(*batch.front(), status);
    if (!MendNamed(batch, status)) return RunAlone(batch);
  }
}

// Their cold rows are too many for one step. The bits of each are the same in
// any company.
void Engine::Loop::RunHalves(const Batch& batch) {
  metrics_.split_steps.Increment();
  const auto middle = batch.begin() + static_cast<ptrdiff_t>(batch.size() / 2);
  RunBatch({batch.begin(), middle}, /*is_all=*/false);
  RunBatch({middle, batch.end()}, /*is_all=*/false);
}

// Which sequence it was shows when each runs alone; their bits are the same in
// any company. One that finds no room in T0 is not at fault.
void Engine::Loop::RunAlone(const Batch& batch) {
  for (RunningSequence* sequence : batch) {
    RunBatch({sequence}, /*is_all=*/false);
  }
}

// The youngest is parked; before it the youngest of those that are recomputed:
// what they lost is not the others' business. One whose lost rows took too much
// at a time takes fewer: parked, it would come back and ask for as many again.
void Engine::Loop::MakeRoom(Batch& batch) {
  auto chosen = std::find_if(
      batch.rbegin(), batch.rend(),
      [](const RunningSequence* sequence) { return sequence->replaying(); });
  if (chosen == batch.rend()) chosen = batch.rbegin();
  if ((*chosen)->HalveLostRows()) return;
  Park(**chosen);
  batch.erase(std::next(chosen).base());
}

void Engine::Loop::Park(RunningSequence& sequence) {
  cache_->Park(sequence.id);
  sequence.parked = true;
  metrics_.parked_sequences.Increment();
}

// T0 is too small for a sequence that runs alone: it takes what has been stored
// of the parked ones since, or waits for stores, as long as one that is lost
// and its repetition may take.
void Engine::Loop::WaitForRoom(RunningSequence& alone,
                               const absl::Status& why) {
  const uint64_t used = cache_->t0_usage().used_bytes;
  for (auto& sequence : running_) {
    if (sequence->parked) cache_->Park(sequence->id);
  }
  if (cache_->t0_usage().used_bytes < used) return;
  const absl::Time now = Clock::Boottime().Now();
  full_since_ = std::min(full_since_, now);
  const bool may_wait = now - full_since_ < 2 * options_.tiering.rpc_timeout;
  if (may_wait && cache_->WaitForRoom(kRoomWait)) return;
  full_since_ = absl::InfiniteFuture();
  if (GiveUpParked(why)) return;
  MayReplayInPlace(alone) ? Replay(alone, why) : Fail(alone, why);
}

absl::Status Engine::Loop::Step(const Batch& batch) {
  absl::Status status;
  gave_up_ = false;
  for (int attempt = 0; attempt < kMaxRepeats; ++attempt) {
    status = TryStep(batch);
    if (!absl::IsAborted(status)) return status;
    metrics_.repeated_steps.Increment();
  }
  return status;
}

int64_t Engine::Loop::NextPosition(const RunningSequence& sequence) const {
  return options_.positions == PositionMode::kAbsolute
             ? sequence.processed()
             : cache_->num_tokens_left(sequence.id);
}

bool Engine::Loop::IsMoot(const Batch& batch) const {
  if (queue_.stopped()) return true;
  const absl::Time now = absl::Now();
  return std::all_of(
      batch.begin(), batch.end(), [now](const RunningSequence* sequence) {
        return sequence->ended || sequence->stream().cancelled() ||
               sequence->request().deadline <= now;
      });
}

absl::Status Engine::Loop::TryStep(const Batch& batch) {
  const absl::Time start = Clock::Boottime().Now();
  const std::vector<int64_t> rows =
      ChooseRows(batch, decoder_->max_rows(), decoder_->max_logit_rows());
  const StepInput input =
      BuildInput(batch, rows, [this](const RunningSequence& sequence) {
        return NextPosition(sequence);
      });
  FARKV_RETURN_IF_ERROR(cache_->Begin(input.rows, *stream_));
  absl::Status status = decoder_->Step(
      *stream_, {input.tokens, input.positions, input.logit_rows},
      [this, &batch](int layer) -> absl::StatusOr<LayerKv> {
        gave_up_ = IsMoot(batch);
        if (gave_up_) return absl::CancelledError("nobody wants this step");
        FARKV_ASSIGN_OR_RETURN(const LayerView view,
                               cache_->PrepareLayer(layer));
        LayerKv kv{view.targets, view.sequences, nullptr};
        if (view.needs_queries) {
          kv.on_queries = [this, layer](const float* queries, float scale) {
            return cache_->SendQueries(layer, queries, scale);
          };
        }
        return kv;
      },
      logits_);
  if (!status.ok()) {
    cache_->Discard();
    CountColdWork();
    return status;
  }
  FARKV_RETURN_IF_ERROR(
      cache_->Commit([this, &batch] { return IsMoot(batch); }));
  full_since_ = absl::InfiniteFuture();
  if (options_.await_stores_every > 0 &&
      ++steps_ % options_.await_stores_every == 0) {
    // What cannot be stored in time stays in T0.
    cache_->Drain(options_.tiering.rpc_timeout).IgnoreError();
  }
  metrics_.steps.Increment();
  CountColdWork();
  metrics_.step_seconds.Observe(
      absl::ToDoubleSeconds(Clock::Boottime().Now() - start));
  Deliver(batch, rows);
  return absl::OkStatus();
}

// At the step, as steps are: operators compare them.
void Engine::Loop::CountColdWork() {
  const auto follow = [](Counter& counter, int64_t& counted, int64_t now) {
    counter.Increment(static_cast<double>(now - std::exchange(counted, now)));
  };
  follow(metrics_.late_fetches, late_layers_counted_, cache_->late_layers());
  follow(metrics_.promoted_tokens, promoted_tokens_counted_,
         cache_->promoted_tokens());
}

}  // namespace farkv
