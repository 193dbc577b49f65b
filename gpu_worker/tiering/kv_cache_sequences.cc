// Sequences come, start again and go.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tiering/admission.h"
#include "gpu_worker/tiering/compact_positions.h"
#include "gpu_worker/tiering/destruction.h"
#include "gpu_worker/tiering/kv_cache_impl.h"
#include "gpu_worker/tiering/row_selection.h"
#include "gpu_worker/tiering/tier_moves.h"

namespace farkv {

absl::Status KvCache::Impl::CheckSpec(const SequenceSpec& spec) const {
  if (spec.prompt_tokens < 1 || spec.max_tokens < spec.prompt_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence ", spec.request_id, ": prompt_tokens is ",
                     spec.prompt_tokens, " and max_tokens ", spec.max_tokens,
                     "; need 1 <= prompt_tokens <= max_tokens"));
  }
  if (spec.placement.granularity != options.granularity) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequence ", spec.request_id, ": granularity is ",
        spec.placement.granularity, ", the worker's is ", options.granularity));
  }
  FARKV_RETURN_IF_ERROR(CheckDestruction(spec));
  FARKV_RETURN_IF_ERROR(CheckSelection(spec));
  FARKV_RETURN_IF_ERROR(CheckCompaction(spec, geometry, remote != nullptr));
  return spec.placement.Validate();
}

// While all nodes are lost T0 has to hold whoever runs whole; what is promised
// to a new sequence must not be what they will need.
absl::Status KvCache::Impl::CheckFitsWithoutNodes(const SequenceSpec& spec,
                                                  int64_t count) const {
  if (remote == nullptr || remote->AnyHealthy()) return absl::OkStatus();
  int64_t running = 0;
  for (const auto& [id, sequence] : sequences) {
    running += ShareInSets(sequence->spec, /*has_nodes=*/false);
  }
  const int64_t needed = count * ShareInSets(spec, /*has_nodes=*/false);
  if (running + needed <= lines.num_sets()) return absl::OkStatus();
  const auto bytes = [&](int64_t sets) {
    return FormatBytes(static_cast<uint64_t>(sets) * lines.set_bytes());
  };
  return absl::UnavailableError(absl::StrCat(
      "sequence ", spec.request_id, " of ", spec.max_tokens, " tokens needs ",
      bytes(needed), " of T0 while no memory node answers, running ones ",
      bytes(running), "; --t0-bytes gives ", bytes(lines.num_sets()),
      AboutNodes()));
}

absl::Status KvCache::Impl::CheckRoom(const SequenceSpec& spec,
                                      int64_t count) const {
  const int64_t needed =
      count * ShareInSets(spec, /*has_nodes=*/!options.memory_nodes.empty());
  const auto bytes = [&](int64_t sets) {
    return FormatBytes(static_cast<uint64_t>(sets) * lines.set_bytes());
  };
  const std::string asks =
      count == 1 ? absl::StrCat("sequence ", spec.request_id, " of ")
                 : absl::StrCat(count, " outputs of ", spec.request_id, " of ");
  if (needed > lines.num_sets()) {
    return absl::InvalidArgumentError(
        absl::StrCat(asks, spec.max_tokens, " tokens needs ", bytes(needed),
                     " of T0, but --t0-bytes gives ", bytes(lines.num_sets())));
  }
  FARKV_RETURN_IF_ERROR(CheckFitsWithoutNodes(spec, count));
  const int64_t free = lines.num_sets() - lines.reserved_sets();
  if (needed <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(asks, spec.max_tokens, " tokens needs ", bytes(needed),
                   " of T0; ", bytes(free), " of ", bytes(lines.num_sets()),
                   " are not promised to others"));
}

absl::StatusOr<SequenceId> KvCache::Impl::Open(const SequenceSpec& spec) {
  FARKV_RETURN_IF_ERROR(CheckSpec(spec));
  FARKV_RETURN_IF_ERROR(CheckRoom(spec, /*count=*/1));
  const int64_t share =
      ShareInSets(spec, /*has_nodes=*/!options.memory_nodes.empty());
  lines.TryReserve(share);
  const SequenceId id{++last_sequence_id};
  auto sequence = std::make_unique<Sequence>(id, spec, share, geometry,
                                             options.granularity);
  PrepareDestruction(*sequence, geometry, num_query_heads);
  PrepareSelection(*sequence, geometry);
  if (remote != nullptr) remote->Opened(*sequence);
  sequences[id] = std::move(sequence);
  return id;
}

void KvCache::Impl::Close(SequenceId id) {
  Sequence* sequence = Find(id);
  if (sequence == nullptr) return;
  Discard();
  if (remote != nullptr) remote->Closed(*sequence);
  sequence->table.Clear(lines);
  lines.Release(sequence->share_sets);
  sequences.erase(id);
}

// Under another id, so that what the background still reports of the old
// sessions finds nobody.
SequenceId KvCache::Impl::Restart(SequenceId id, SessionId session) {
  Discard();
  const auto found = sequences.find(id);
  if (found == sequences.end()) return id;
  const std::unique_ptr<Sequence> old = std::move(found->second);
  sequences.erase(found);
  if (remote != nullptr) remote->Closed(*old);
  old->table.Clear(lines);
  SequenceSpec spec = old->spec;
  spec.session = session;
  const SequenceId fresh_id{++last_sequence_id};
  auto fresh =
      std::make_unique<Sequence>(fresh_id, std::move(spec), old->share_sets,
                                 geometry, lines.granularity());
  fresh->TakeFiguresOf(*old);
  PrepareDestruction(*fresh, geometry, num_query_heads);
  PrepareSelection(*fresh, geometry);
  if (remote != nullptr) {
    fresh->remote.distrusted = old->remote.distrusted;
    fresh->remote.continues = true;
    remote->Opened(*fresh);
  }
  sequences[fresh_id] = std::move(fresh);
  return fresh_id;
}

void KvCache::Impl::Park(SequenceId id) {
  Sequence* sequence = Find(id);
  if (sequence == nullptr || remote == nullptr || step.active()) return;
  remote->Poll(sequences, lines);
  sequence->reads = SequenceReads();
  sequence->promotion = SequencePromotion();
  farkv::Park(*sequence, lines);
}
}  // namespace farkv
