// What becomes of a sequence whose step could not read its rows. DESIGN 1, P5.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/telemetry/log.h"
#include "gpu_worker/engine/engine_loop.h"

namespace farkv {
namespace {

// Of one request: a node that damages whatever it is given must not keep it at
// work for ever.
constexpr int kMaxRecoveries = 8;

// A step whose repetitions were discarded as well cannot read its rows.
bool IsLostRows(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

}  // namespace

// Recovers the sequences whose cold rows failed the step, and takes them out of
// `batch`: the others need not wait for the same node again. False when the
// cache names none. `why` is the step's first error, of the first of them
// unless another kind of error, of another sequence, came before.
bool Engine::Loop::MendNamed(Batch& batch, const absl::Status& why) {
  const std::vector<SequenceId> failed = cache_->failed_sequences();
  bool is_first = true;
  for (const SequenceId id : failed) {
    const auto found = std::find_if(
        batch.begin(), batch.end(),
        [id](const RunningSequence* sequence) { return sequence->id == id; });
    if (found == batch.end()) continue;
    RunningSequence& sequence = **found;
    batch.erase(found);
    // An ABORTED one may be of somebody who runs on.
    Mend(sequence, is_first && absl::IsUnavailable(why)
                       ? why
                       : absl::UnavailableError(absl::StrCat(
                             "sequence ", sequence.request().request_id,
                             ": its cold rows did not come")));
    is_first = false;
  }
  return !is_first;
}

// After a step of this sequence alone, or one that failed for its rows.
void Engine::Loop::Mend(RunningSequence& sequence, const absl::Status& why) {
  if (absl::IsOutOfRange(why)) {
    if (MayReplayInPlace(sequence)) return Replay(sequence, why);
    return Fail(sequence, absl::ResourceExhaustedError(why.message()));
  }
  if (!IsLostRows(why)) return Fail(sequence, why);
  if (sequence.recoveries() < kMaxRecoveries) return Recover(sequence, why);
  Fail(sequence,
       absl::Status(why.code(),
                    absl::StrCat(why.message(), "; rows of this request were ",
                                 "lost and recomputed ", kMaxRecoveries,
                                 " times before, which is the most")));
}

// Rows that are lost are computed again from its tokens, in steps beside those
// of the others: these rows alone where that is enough. DESIGN 1, P5.
void Engine::Loop::Recover(RunningSequence& sequence, const absl::Status& why) {
  // A step that was discarded thrice does not tell what was wrong.
  if (absl::IsAborted(why)) return Replay(sequence, why);
  std::vector<int64_t> lost = cache_->GiveUpLostRows(sequence.id);
  if (lost.empty()) return Replay(sequence, why);
  spdlog::warn("request {}: {} of {} tokens are recomputed: {}",
               sequence.request().request_id, lost.size(), sequence.processed(),
               std::string(why.message()));
  metrics_.recoveries.Increment();
  metrics_.partial_recoveries.Increment();
  metrics_.partial_recovery_tokens.Increment(static_cast<double>(lost.size()));
  sequence.Recompute(std::move(lost));
}

// Whether a sequence that cannot go on computing what it has lost begins anew:
// that takes no more room than it was promised, and reads row by row.
bool Engine::Loop::MayReplayInPlace(const RunningSequence& sequence) const {
  return !sequence.lost().empty() && sequence.recoveries() < kMaxRecoveries;
}

// All its rows are given up, wherever they are, and its tokens processed again.
void Engine::Loop::Replay(RunningSequence& sequence, const absl::Status& why) {
  spdlog::warn("request {}: all {} tokens are recomputed: {}",
               sequence.request().request_id, sequence.processed(),
               std::string(why.message()));
  metrics_.whole_recovery_tokens.Increment(
      static_cast<double>(sequence.processed()));
  const SessionId session = SessionId::Random();
  sequence.id = cache_->Restart(sequence.id, session);
  sequence.Replay(session);
  metrics_.recoveries.Increment();
}

// What the youngest parked sequence keeps in T0 because no node takes it makes
// room for those before it: its tokens are processed again when they are done.
bool Engine::Loop::GiveUpParked(const absl::Status& why) {
  for (auto it = running_.rbegin(); it != running_.rend(); ++it) {
    RunningSequence& sequence = **it;
    if (!sequence.parked || sequence.recoveries() >= kMaxRecoveries) continue;
    if (cache_->Stats(sequence.id).t0_tokens == 0) continue;
    Replay(sequence, why);
    return true;
  }
  return false;
}

}  // namespace farkv
