#include "gpu_worker/tiering/destruction.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/eviction_decision.h"
#include "gpu_worker/tiering/row_reader.h"

namespace farkv {
namespace {

uint64_t Fold(uint64_t digest, uint64_t value) {
  return CounterDraw(digest, {value});
}

uint64_t DigestOf(const std::vector<int64_t>& positions) {
  uint64_t digest = positions.size();
  for (const int64_t position : positions) {
    digest = Fold(digest, static_cast<uint64_t>(position));
  }
  return digest;
}

SequenceCounts CountsOf(const Sequence& sequence) {
  const int64_t tokens = sequence.table.num_tokens();
  return {.prompt_tokens = sequence.spec.prompt_tokens,
          .generated = tokens - sequence.spec.prompt_tokens,
          .cached = tokens - sequence.destruction.destroyed,
          .destroyed = sequence.destruction.destroyed};
}

// The event of this step, or else one that could not take place before: of as
// many rows as then under the two bounds, else to the budget of then.
std::optional<DestructionEvent> NextEvent(Sequence& sequence) {
  SequenceDestruction& state = sequence.destruction;
  const SequenceCounts counts = CountsOf(sequence);
  auto event = PlanDestruction(*sequence.spec.destruction, counts);
  if (event.has_value() || !state.postponed.has_value()) return event;
  event = state.postponed;
  if (sequence.spec.destruction->budget.kind == BudgetKind::kBounds) {
    event->num_kept += counts.cached - state.cached_then;
  }
  return event;
}

absl::StatusOr<KeptRows> Decide(Sequence& sequence,
                                const DestructionEvent& event,
                                const DestructionTools& tools) {
  const PolicyNeeds needs = NeedsOf(event.policy);
  if (needs.cumulative && needs.shared_by_heads && tools.pushdown != nullptr) {
    tools.pushdown->CollectScores(sequence);
  }
  if (!needs.keys && !needs.values && !needs.mass) {
    return DecideKeptRows(sequence, event, tools.geometry, nullptr);
  }
  RowReader reader(sequence, tools.lines, tools.geometry, tools.stream,
                   tools.reads, absl::Now() + tools.timeout);
  FARKV_ASSIGN_OR_RETURN(
      KeptRows rows, DecideKeptRows(sequence, event, tools.geometry, &reader));
  FARKV_RETURN_IF_ERROR(reader.Recheck());
  return rows;
}

// Returns the number of rows destroyed.
int64_t Keep(Sequence& sequence, const KeptRows& rows) {
  const size_t heads = rows.kept.size();
  std::vector<std::vector<uint64_t>> live(
      static_cast<size_t>(sequence.table.num_pages()),
      std::vector<uint64_t>(heads));
  for (size_t head = 0; head < heads; ++head) {
    for (const int64_t position : rows.kept[head]) {
      live[static_cast<size_t>(position / kPageTokens)][head] |=
          uint64_t{1} << (position % kPageTokens);
    }
  }
  int64_t destroyed = 0;
  for (size_t i = 0; i < live.size(); ++i) {
    destroyed +=
        sequence.table.Keep(sequence.table.page(static_cast<int>(i)), live[i]);
  }
  return destroyed;
}

void Record(Sequence& sequence, const DestructionEvent& event,
            const KeptRows& rows, int64_t destroyed) {
  SequenceTierStats& stats = sequence.stats;
  EvictionRecord record;
  record.event = stats.evictions;
  record.num_tokens = sequence.table.num_tokens();
  record.policy = DestructionPolicyName(event.policy);
  record.num_kept = event.num_kept;
  record.destroyed_rows = destroyed;
  stats.evictions_digest =
      Fold(stats.evictions_digest, static_cast<uint64_t>(record.num_tokens));
  for (const std::vector<int64_t>& kept : rows.kept) {
    record.kept_digests.push_back(DigestOf(kept));
    stats.evictions_digest =
        Fold(stats.evictions_digest, record.kept_digests.back());
  }
  ++stats.evictions;
  stats.destroyed_rows += destroyed;
  stats.broken_scores += rows.num_non_finite;
  std::deque<EvictionRecord>& records = sequence.destruction.records;
  if (records.size() == kMaxEvictionRecords) records.pop_front();
  records.push_back(std::move(record));
}

void Postpone(Sequence& sequence, const DestructionEvent& event,
              const absl::Status& why) {
  SequenceDestruction& state = sequence.destruction;
  if (!state.postponed.has_value()) {
    spdlog::warn("sequence {}: event {} has to wait: {}",
                 sequence.spec.request_id, sequence.stats.evictions,
                 std::string(why.message()));
  }
  // An event that the policy refuses would be refused again.
  if (!absl::IsInvalidArgument(why)) state.postponed = event;
  state.cached_then = CountsOf(sequence).cached;
  ++sequence.stats.postponed_evictions;
}

bool TakePlace(Sequence& sequence, const DestructionEvent& event,
               const DestructionTools& tools) {
  const absl::StatusOr<KeptRows> rows = Decide(sequence, event, tools);
  if (!rows.ok()) {
    Postpone(sequence, event, rows.status());
    return false;
  }
  const int64_t destroyed = Keep(sequence, *rows);
  SequenceDestruction& state = sequence.destruction;
  state.postponed.reset();
  state.destroyed = sequence.table.num_tokens() -
                    static_cast<int64_t>(rows->kept.front().size());
  Record(sequence, event, *rows, destroyed);
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    DropDead(sequence, sequence.table.page(i), tools.lines);
  }
  return destroyed > 0;
}

void NoteLoss(Sequence& sequence) {
  const SequenceCounts counts = CountsOf(sequence);
  if (counts.generated < 1) return;
  const int64_t unprotected = sequence.spec.destruction->protect_prompt
                                  ? counts.generated
                                  : counts.prompt_tokens + counts.generated;
  LossRecord& loss = sequence.destruction.loss;
  loss.Add(unprotected, counts.destroyed);
  sequence.stats.destroyed_share = loss.at_end;
  sequence.stats.destroyed_share_average = loss.average();
}

}  // namespace

absl::Status CheckDestruction(const SequenceSpec& spec) {
  if (!spec.destruction.has_value()) return absl::OkStatus();
  FARKV_RETURN_IF_ERROR(spec.destruction->Validate());
  return spec.destruction->ValidateRequest(spec.prompt_tokens);
}

void PrepareDestruction(Sequence& sequence, const KvGeometry& geometry,
                        int num_query_heads) {
  if (!sequence.spec.destruction.has_value()) return;
  const DestructionPolicy& policy = sequence.spec.destruction->policy;
  if (const int window = WindowOf(policy); window > 0) {
    sequence.destruction.queries = QueryRing(geometry, num_query_heads, window);
  }
  const PolicyNeeds needs = NeedsOf(policy);
  if (!needs.cumulative || needs.shared_by_heads) return;
  sequence.destruction.head_scores.resize(
      static_cast<size_t>(geometry.num_layers));
  for (auto& layer : sequence.destruction.head_scores) {
    layer.resize(static_cast<size_t>(geometry.num_kv_heads));
  }
}

// Events take place after the prompt only.
bool WantsQueries(const Sequence& sequence, int64_t end) {
  const int window = sequence.destruction.queries.window();
  return window > 0 && end > sequence.spec.prompt_tokens - window;
}

void DropDead(Sequence& sequence, Page& page, T0Lines& lines) {
  if (page.state == StoreState::kStoring || page.alive == page.written) return;
  PageTable& table = sequence.table;
  for (int slot = 0; slot < kPageTokens; slot += table.granularity()) {
    const uint64_t group = table.GroupMask(slot);
    const bool dead = (page.written & ~page.alive & group) == group;
    if (dead) table.Drop(page, slot, lines);
  }
  if (page.full() && page.alive == 0) page.state = StoreState::kGone;
}

bool DestroyDueRows(Sequence& sequence, const DestructionTools& tools) {
  if (!sequence.spec.destruction.has_value()) return false;
  if (sequence.table.num_tokens() < sequence.spec.prompt_tokens) return false;
  const std::optional<DestructionEvent> event = NextEvent(sequence);
  const bool destroyed =
      event.has_value() && TakePlace(sequence, *event, tools);
  NoteLoss(sequence);
  return destroyed;
}

}  // namespace farkv
