#include "gpu_worker/tiering/destruction.h"

#include <numeric>
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

// An event that waits, else the one of this step; null when there is none.
PendingEvent* NextEvent(Sequence& sequence) {
  std::optional<PendingEvent>& pending = sequence.destruction.pending;
  if (!pending.has_value()) {
    auto event =
        PlanDestruction(*sequence.spec.destruction, CountsOf(sequence));
    if (!event.has_value()) return nullptr;
    pending.emplace();
    pending->event = *std::move(event);
    pending->num_tokens = sequence.table.num_tokens();
  }
  return &*pending;
}

// Policies that rank by cumulative attention read no rows, so the scores of an
// event that waits are not needed again.
absl::Status Decide(Sequence& sequence, PendingEvent& pending,
                    const DestructionTools& tools) {
  const PolicyNeeds needs = NeedsOf(pending.event.policy);
  if (needs.cumulative && needs.shared_by_heads && tools.pushdown != nullptr) {
    tools.pushdown->CollectScores(sequence);
  }
  if (!needs.keys && !needs.values && !needs.mass) {
    return DecideLayers(sequence, pending, tools.geometry, nullptr, nullptr,
                        tools.is_moot);
  }
  const size_t heads_before = pending.rows.kept.size();
  const int64_t non_finite_before = pending.rows.num_non_finite;
  const bool ask = tools.nodes != nullptr &&
                   tools.nodes->MayDecide(sequence, pending.event.policy);
  RowReader reader(sequence, tools.lines, tools.geometry, tools.stream,
                   tools.reads, tools.layer_timeout);
  const absl::Status decided =
      DecideLayers(sequence, pending, tools.geometry, &reader,
                   ask ? tools.nodes : nullptr, tools.is_moot);
  // With nodes that decide nothing is mapped, so this holds.
  if (absl::Status status = reader.Recheck(); !status.ok()) {
    pending.rows.kept.resize(heads_before);
    pending.rows.num_non_finite = non_finite_before;
    return status;
  }
  return decided;
}

// Those of a page from position `end` on.
uint64_t YoungRows(const Page& page, int64_t end) {
  const int64_t old = end - int64_t{page.index} * kPageTokens;
  if (old <= 0) return page.written;
  if (old >= kPageTokens) return 0;
  return page.written & ~SlotMask(0, static_cast<int>(old));
}

// Returns the number of rows destroyed.
int64_t Keep(Sequence& sequence, const PendingEvent& pending) {
  const size_t heads = pending.rows.kept.size();
  std::vector<std::vector<uint64_t>> live;
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    live.emplace_back(heads,
                      YoungRows(sequence.table.page(i), pending.num_tokens));
  }
  for (size_t head = 0; head < heads; ++head) {
    for (const int64_t position : pending.rows.kept[head]) {
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

void Log(const Sequence& sequence, const PendingEvent& pending,
         EvictionRecord record, const DestructionTools& tools) {
  const std::vector<std::vector<int64_t>>& kept = pending.rows.kept;
  // As many in every head.
  const std::vector<uint8_t> pinned =
      PinRows(pending.event.pinned, kept.front(), pending.num_tokens);
  const auto heads = static_cast<int64_t>(kept.size());
  const auto count = static_cast<int64_t>(pinned.size());
  const int64_t free =
      count - std::accumulate(pinned.begin(), pinned.end(), int64_t{0});
  tools.log.Add({.time = tools.clock.Now(),
                 .session = sequence.spec.session,
                 .request_id = sequence.spec.request_id,
                 .request = RequestNumber(sequence.spec.request_id),
                 .seed = sequence.spec.destruction_seed,
                 .candidates = heads * free + record.destroyed_rows,
                 .kept = heads * count,
                 .non_finite = pending.rows.num_non_finite,
                 .layers_by_nodes = pending.rows.layers_by_nodes,
                 .record = std::move(record)});
}

void Record(Sequence& sequence, const PendingEvent& pending, int64_t destroyed,
            const DestructionTools& tools) {
  SequenceTierStats& stats = sequence.stats;
  EvictionRecord record;
  record.event = stats.evictions;
  record.num_tokens = pending.num_tokens;
  record.policy = DestructionPolicyName(pending.event.policy);
  record.num_kept = pending.event.num_kept;
  record.destroyed_rows = destroyed;
  stats.evictions_digest =
      Fold(stats.evictions_digest, static_cast<uint64_t>(record.num_tokens));
  for (const std::vector<int64_t>& kept : pending.rows.kept) {
    record.kept_digests.push_back(DigestOf(kept));
    stats.evictions_digest =
        Fold(stats.evictions_digest, record.kept_digests.back());
  }
  ++stats.evictions;
  stats.destroyed_rows += destroyed;
  stats.rows_were_destroyed |= destroyed > 0;
  stats.broken_scores += pending.rows.num_non_finite;
  stats.node_evictions += pending.rows.layers_by_nodes > 0 ? 1 : 0;
  if (record.num_tokens > sequence.destruction.logged_tokens) {
    Log(sequence, pending, record, tools);
    sequence.destruction.logged_tokens = record.num_tokens;
  }
  std::deque<EvictionRecord>& records = sequence.destruction.records;
  if (records.size() == kMaxEvictionRecords) records.pop_front();
  records.push_back(std::move(record));
}

void Skip(Sequence& sequence, const absl::Status& why) {
  SequenceDestruction& state = sequence.destruction;
  ++sequence.stats.skipped_evictions;
  if (!std::exchange(state.skip_logged, true)) {
    spdlog::warn(
        "sequence {}: event {} is given up, its rows stay (logged once per "
        "sequence): {}",
        sequence.spec.request_id, sequence.stats.evictions,
        std::string(why.message()));
  }
  state.pending.reset();
}

void Postpone(Sequence& sequence, bool got_further, const absl::Status& why,
              absl::Time now) {
  SequenceDestruction& state = sequence.destruction;
  PendingEvent& pending = *state.pending;
  if (got_further) {
    pending.failures = 0;
    pending.pause.Succeeded();
  }
  // What the policy refuses it would refuse again.
  if (absl::IsInvalidArgument(why) || ++pending.failures == kMaxEventTries) {
    return Skip(sequence, why);
  }
  // A mapped page that must not be read in place is fetched next time.
  if (!absl::IsAborted(why)) pending.pause.Failed(now);
  if (pending.queries.has_value()) return;
  pending.queries = state.queries;
  ++sequence.stats.postponed_evictions;
  spdlog::warn("sequence {}: event {} has to wait: {}",
               sequence.spec.request_id, sequence.stats.evictions,
               std::string(why.message()));
}

// Returns whether rows were destroyed.
bool Try(Sequence& sequence, PendingEvent& pending,
         const DestructionTools& tools) {
  const size_t decided_before = pending.rows.kept.size();
  const absl::Status status = Decide(sequence, pending, tools);
  if (absl::IsCancelled(status)) return false;
  if (!status.ok()) {
    const bool got_further = pending.rows.kept.size() > decided_before;
    Postpone(sequence, got_further, status, tools.clock.Now());
    return false;
  }
  const int64_t destroyed = Keep(sequence, pending);
  Record(sequence, pending, destroyed, tools);
  SequenceDestruction& state = sequence.destruction;
  state.destroyed = pending.num_tokens -
                    static_cast<int64_t>(pending.rows.kept.front().size());
  state.pending.reset();
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
  if (page.sent && page.state == StoreState::kFull && page.alive != 0) return;
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
  PendingEvent* pending = NextEvent(sequence);
  const bool destroyed = pending != nullptr &&
                         pending->pause.Over(tools.clock.Now()) &&
                         Try(sequence, *pending, tools);
  NoteLoss(sequence);
  return destroyed;
}

}  // namespace farkv
