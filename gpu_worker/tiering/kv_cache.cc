#include "gpu_worker/tiering/kv_cache.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/admission.h"
#include "gpu_worker/tiering/compact_positions.h"
#include "gpu_worker/tiering/destruction.h"
#include "gpu_worker/tiering/kv_cache_impl.h"
#include "gpu_worker/tiering/lost_rows.h"
#include "gpu_worker/tiering/node_access.h"
#include "gpu_worker/tiering/row_selection.h"
#include "gpu_worker/tiering/t2_choice.h"
#include "gpu_worker/tiering/tier_moves.h"

namespace farkv {

KvCache::Impl::~Impl() {
  Discard();
  while (!sequences.empty()) Close(sequences.begin()->first);
}

absl::Status KvCache::Impl::CheckRows(std::span<const StepRows> rows) {
  if (step.active()) {
    return absl::FailedPreconditionError(
        "Begin: the last step was neither committed nor discarded");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sequence* sequence = Find(rows[i].sequence);
    if (sequence == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("Begin: no open sequence ", rows[i].sequence.value));
    }
    const int64_t end = sequence->table.num_tokens() + rows[i].num_rows;
    const auto lost = static_cast<int64_t>(sequence->loss.positions.size());
    if (lost > 0 && rows[i].num_rows > lost) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Begin: sequence ", sequence->spec.request_id, " asks for ",
          rows[i].num_rows, " rows and has lost ", lost, " that come first"));
    }
    if (rows[i].num_rows < 1 ||
        (lost == 0 && end > sequence->spec.max_tokens)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Begin: sequence ", sequence->spec.request_id, " has ",
                       sequence->table.num_tokens(), " tokens and asks for ",
                       rows[i].num_rows, " more; max_tokens is ",
                       sequence->spec.max_tokens));
    }
    if (sequence->spec.selection.policy != SelectionPolicy::kNone &&
        rows[i].num_rows > 1 && end > sequence->spec.prompt_tokens) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Begin: sequence ", sequence->spec.request_id, " asks for ",
          rows[i].num_rows, " rows up to position ", end, "; behind the ",
          "prompt of ", sequence->spec.prompt_tokens,
          " a step with selection has one"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (rows[j].sequence != rows[i].sequence) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("Begin: sequence ", sequence->spec.request_id,
                       " is named twice in one step"));
    }
  }
  return absl::OkStatus();
}

// Rows fetched ahead for sequences that are not in this step.
void KvCache::Impl::DropUnusedReads() {
  for (auto& [id, sequence] : sequences) {
    const auto parts = step.parts();
    const bool used = std::any_of(parts.begin(), parts.end(),
                                  [&, s = sequence.get()](const auto& part) {
                                    return part.sequence == s;
                                  });
    if (!used) sequence->reads = SequenceReads();
  }
}

absl::Status KvCache::Impl::Begin(std::span<const StepRows> rows, Stream& on) {
  failed.clear();
  FARKV_RETURN_IF_ERROR(CheckRows(rows));
  int64_t needed = 0;
  for (const StepRows& row : rows) {
    const Sequence& sequence = *Find(row.sequence);
    needed += sequence.loss.positions.empty()
                  ? sequence.table.SetsFor(row.num_rows)
                  : SetsForLost(sequence, row.num_rows);
  }
  if (remote != nullptr) {
    Advance();
    remote->TakeProgress();  // what is told after this is news
  }
  if (!MakeRoom(needed)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("T0 is full: the step needs ", needed, " line sets of ",
                     FormatBytes(lines.set_bytes()), ", ", lines.free_sets(),
                     " of ", lines.num_sets(), " are free", AboutNodes()));
  }
  stream = &on;
  step.Start();
  for (const StepRows& row : rows) {
    step.AddPart(*Find(row.sequence), row.num_rows, lines);
  }
  if (remote == nullptr) return absl::OkStatus();
  for (StepPart& part : step.parts()) {
    const int64_t before = part.sequence->stats.promoted_tokens;
    FinishPromotions(*part.sequence, lines, geometry, on);
    promoted_tokens += part.sequence->stats.promoted_tokens - before;
  }
  DropUnusedReads();
  if (absl::Status fits =
          reads->Begin(step.parts(), pushdown->Choose(step.parts()),
                       pushdown->Able(), failed);
      !fits.ok()) {
    reads->End(/*keep=*/true);
    step.Discard(lines);
    return fits;
  }
  pushdown->Begin(step.parts(), reads->step_number());
  return absl::OkStatus();
}

absl::StatusOr<LayerView> KvCache::Impl::PrepareLayer(int layer) {
  if (!step.active()) {
    return absl::FailedPreconditionError("PrepareLayer: no step was begun");
  }
  if (layer < 0 || layer >= geometry.num_layers) {
    return absl::InvalidArgumentError(absl::StrCat("PrepareLayer: layer is ",
                                                   layer, ", the model has ",
                                                   geometry.num_layers));
  }
  std::span<const std::vector<ColdBlock>> cold;
  std::span<AttentionElsewhere> elsewhere;
  if (reads != nullptr) {
    failed.clear();
    FARKV_ASSIGN_OR_RETURN(cold, reads->Layer(layer, *stream, failed));
    FARKV_ASSIGN_OR_RETURN(elsewhere, pushdown->Layer(layer));
  }
  FARKV_ASSIGN_OR_RETURN(LayerView view,
                         step.Layer(layer, lines, cold, elsewhere));
  for (const StepPart& part : step.parts()) {
    view.needs_queries |=
        part.Selects(layer) ||
        WantsQueries(*part.sequence, part.first_position + part.num_rows);
  }
  return view;
}

absl::Status KvCache::Impl::Commit(const std::function<bool()>& is_moot) {
  if (!step.active()) {
    return absl::FailedPreconditionError("Commit: no step was begun");
  }
  if (reads != nullptr) {
    absl::Status status = reads->Recheck();
    if (status.ok()) status = pushdown->Commit(reads->waited());
    if (!status.ok()) {
      Discard();
      return status;
    }
    reads->End(/*keep=*/true);
  }
  step.Commit();
  if (remote != nullptr) remote->Poll(sequences, lines);
  for (StepPart& part : step.parts()) {
    Sequence& sequence = *part.sequence;
    if (!part.again.empty()) {
      NoteRecomputed(sequence, part.num_rows);
      remote->Advance(sequence, lines);
      continue;
    }
    NoteSelectedStep(part, lines, geometry, *stream);
    KeepWrittenKeys(part, lines, geometry, *stream);
    if (remote != nullptr) Seal(sequence, part.first_position);
    DestroyRows(sequence, is_moot);
    TurnMovedKeys(sequence, lines, geometry, *stream);
    if (remote == nullptr) continue;
    remote->Advance(sequence, lines);
    if (IsPlanDue(sequence, part.first_position)) {
      pushdown->CollectScores(sequence);
      NotePlan(sequence, MakePlan(sequence, lines));
      const int32_t t2_ratio = std::min(
          options.t2_ratio, sequence.spec.t2_ratio.value_or(options.t2_ratio));
      if (t2_ratio > 0 && RemoteTier::MayCompress(sequence)) {
        remote->Compress(sequence, ChooseT2Pages(sequence, t2_ratio));
      }
    }
    StartPromotions(sequence, lines, options, *reads);
  }
  return absl::OkStatus();
}

void KvCache::Impl::DestroyRows(Sequence& sequence,
                                const std::function<bool()>& is_moot) {
  DestroyDueRows(sequence, {.geometry = geometry,
                            .lines = lines,
                            .stream = *stream,
                            .layer_timeout = 2 * options.fetch_timeout,
                            .clock = *clock,
                            .log = decisions,
                            .reads = reads.get(),
                            .pushdown = pushdown.get(),
                            .nodes = node_decisions.get(),
                            .is_moot = is_moot});
}

// For the nodes that attend, for policies that look at queries later, and for
// choosing rows.
absl::Status KvCache::Impl::SendQueries(int layer, const float* queries,
                                        float scale) {
  const size_t row = static_cast<size_t>(num_query_heads) *
                     static_cast<size_t>(geometry.head_dim);
  const float* own = queries;
  bool selects = false;
  for (StepPart& part : step.parts()) {
    part.sequence->destruction.queries.Add(layer, part.first_position,
                                           part.num_rows, own, scale);
    if (part.Selects(layer)) {
      selects = true;
      FARKV_RETURN_IF_ERROR(
          ChooseRows(part, layer, own, geometry, num_query_heads));
    }
    own += static_cast<size_t>(part.num_rows) * row;
  }
  if (pushdown != nullptr) {
    FARKV_RETURN_IF_ERROR(pushdown->Send(layer, queries, scale));
  }
  if (!selects) return absl::OkStatus();
  std::span<const std::vector<ColdBlock>> cold;
  if (reads != nullptr) {
    FARKV_ASSIGN_OR_RETURN(cold, reads->SelectedLayer(layer, *stream, failed));
  }
  return step.Select(layer, lines, cold);
}

// The step is committed by then: without a plan the tiers stay as they are.
void KvCache::Impl::NotePlan(Sequence& sequence, const absl::Status& plan) {
  if (plan.ok()) return;
  ++sequence.stats.failed_plans;
  if (plan_failure_logged) return;
  plan_failure_logged = true;
  spdlog::error("sequence {}: no placement plan (logged once): {}",
                sequence.spec.request_id, std::string(plan.message()));
}

void KvCache::Impl::Discard() {
  if (!step.active()) return;
  stream->Synchronize();
  if (reads != nullptr) {
    reads->End(/*keep=*/false);
    pushdown->Discard();
  }
  step.Discard(lines);
}

KvCache::KvCache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvCache::~KvCache() = default;

absl::StatusOr<std::unique_ptr<KvCache>> KvCache::Create(
    const TieringOptions& options, const KvGeometry& geometry,
    int num_query_heads, Device& device) {
  return CreateWith(options, geometry, num_query_heads, device,
                    MakeNodeAccess(options));
}

absl::StatusOr<std::unique_ptr<KvCache>> KvCache::CreateWith(
    const TieringOptions& options, const KvGeometry& geometry,
    int num_query_heads, Device& device, const NodeAccess& access) {
  FARKV_RETURN_IF_ERROR(options.Validate());
  FARKV_RETURN_IF_ERROR(geometry.Validate());
  if (num_query_heads < 1 || num_query_heads % geometry.num_kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_query_heads is ", num_query_heads,
                     ", must be a positive multiple of the KV heads, ",
                     geometry.num_kv_heads));
  }
  FARKV_ASSIGN_OR_RETURN(
      T0Lines lines,
      T0Lines::Create(device, geometry, options.granularity, options.t0_bytes));
  auto impl = std::make_unique<Impl>(options, geometry, num_query_heads,
                                     std::move(lines));
  impl->clock = access.clock;
  if (!options.memory_nodes.empty()) {
    FARKV_ASSIGN_OR_RETURN(
        impl->remote,
        RemoteTier::Create(impl->options, geometry, device, access));
    impl->reads = std::make_unique<ColdReads>(
        impl->options, geometry, device, impl->remote->links(), *access.clock);
    impl->pushdown = std::make_unique<Pushdown>(
        impl->options, geometry, num_query_heads, impl->remote->links(),
        *access.clock, device.kind());
    impl->node_decisions = std::make_unique<NodeDecisions>(
        impl->options, geometry, impl->remote->links(), *impl->clock);
  }
  return std::unique_ptr<KvCache>(new KvCache(std::move(impl)));
}

absl::Status KvCache::CheckRoom(const SequenceSpec& spec, int64_t count) const {
  return impl_->CheckRoom(spec, count);
}
absl::StatusOr<SequenceId> KvCache::Open(const SequenceSpec& spec) {
  return impl_->Open(spec);
}

void KvCache::Close(SequenceId id) { impl_->Close(id); }

SequenceId KvCache::Restart(SequenceId id, SessionId session) {
  return impl_->Restart(id, session);
}

absl::Status KvCache::Begin(std::span<const StepRows> rows, Stream& stream) {
  return impl_->Begin(rows, stream);
}

absl::StatusOr<LayerView> KvCache::PrepareLayer(int layer) {
  return impl_->PrepareLayer(layer);
}

absl::Status KvCache::SendQueries(int layer, const float* queries,
                                  float scale) {
  return impl_->SendQueries(layer, queries, scale);
}

absl::Status KvCache::Commit(const std::function<bool()>& is_moot) {
  return impl_->Commit(is_moot);
}

void KvCache::Discard() { impl_->Discard(); }

const std::vector<SequenceId>& KvCache::failed_sequences() const {
  return impl_->failed;
}

bool KvCache::WaitForRoom(absl::Duration timeout) {
  return impl_->WaitForRoom(timeout);
}

void KvCache::WaitForNodes(absl::Duration timeout) {
  impl_->WaitForNodes(timeout);
}

void KvCache::Park(SequenceId id) { impl_->Park(id); }

absl::Status KvCache::Drain(absl::Duration timeout) {
  return impl_->Drain(timeout);
}

}  // namespace farkv
