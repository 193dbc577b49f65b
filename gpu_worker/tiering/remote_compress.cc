// Stored pages that nodes compress from T1 to T2.
#include <utility>

#include "common/rpc/error_reason.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/remote_tier_impl.h"

namespace farkv {
namespace {

// After a node had no room for a T2 page.
constexpr absl::Duration kRefused = absl::Seconds(1);
// Layers of pages in one call, which must end well within its deadline: the
// node compresses them before it answers.
constexpr int kMaxCompressed = 256;
// Tokens whose rows stay exact in T2, from the start of the sequence
// (attention sinks, arXiv 2309.17453).
constexpr int kSinkTokens = 4;

// Slots of a page that hold sinks: the first tokens, and the first generated
// ones that the placement protects.
uint64_t SinksOf(const Sequence& sequence, int page_index) {
  uint64_t slots = page_index == 0 ? SlotMask(0, kSinkTokens) : 0;
  const int64_t first = int64_t{page_index} * kPageTokens;
  for (int64_t i = 0; i < sequence.spec.placement.sinks; ++i) {
    const int64_t slot = sequence.spec.prompt_tokens + i - first;
    if (slot >= 0 && slot < kPageTokens) slots |= uint64_t{1} << slot;
  }
  return slots;
}

}  // namespace

bool RemoteTier::MayCompress(const Sequence& sequence) {
  return Now() >= sequence.remote.compress_retry_at;
}

void RemoteTier::Compress(Sequence& sequence, std::span<const int> pages) {
  RemoteState& remote = sequence.remote;
  std::vector<std::vector<TierChange>> by_node(links_.size());
  for (const int index : pages) {
    // Kept in T0 because its node did not answer: a later plan drops it.
    if (sequence.table.page(index).resident != 0) continue;
    RemotePage& page = remote.pages[static_cast<size_t>(index)];
    std::vector<TierChange>& changes = by_node[static_cast<size_t>(page.node)];
    if (!changes.empty() &&
        static_cast<int>(changes.size()) + geometry_.num_layers >
            kMaxCompressed) {
      continue;
    }
    page.moving = true;
    const uint64_t sinks = SinksOf(sequence, index);
    for (int layer = 0; layer < geometry_.num_layers; ++layer) {
      const uint64_t* live =
          sequence.table.page(index).layer_live(layer, geometry_.num_kv_heads);
      TierChange& change = changes.emplace_back();
      change.page = {layer, index};
      change.t2_bits = options_.t2_bits;
      for (int h = 0; h < geometry_.num_kv_heads; ++h) {
        change.exceptions.push_back(live[h] & sinks);
      }
    }
  }
  for (size_t node = 0; node < by_node.size(); ++node) {
    if (by_node[node].empty()) continue;
    links_[node]->ChangeTiers(sequence.id, remote.nodes[node].session,
                              std::move(by_node[node]));
  }
}

// A page that moved is read at its new place from the next step on; what was
// fetched ahead of it is dropped, so that a step reads one form of a page. One
// of which nobody knows stays `moving`: T0 takes no rows of it meanwhile.
void RemoteTier::Handle(const PagesMoved& event, SequenceMap& sequences) {
  Sequence* sequence = FindSequence(sequences, event.sequence);
  if (sequence == nullptr) return;
  RemoteState& remote = sequence->remote;
  if (event.unanswered) {
    remote.compress_retry_at = Now() + kRefused;
    return;
  }
  const bool same_session =
      remote.nodes[static_cast<size_t>(event.node)].session == event.session;
  absl::Status refusal = event.moved.status();
  for (size_t i = 0; i < event.asked.size(); ++i) {
    const TierChange& asked = event.asked[i];
    RemotePage& page = remote.pages[static_cast<size_t>(asked.page.page_index)];
    if (page.node != event.node || !same_session) continue;
    page.moving = false;
    if (!event.moved.ok()) continue;
    const PagePlacement& placement = (*event.moved)[i];
    if (!placement.status.ok()) {
      refusal.Update(placement.status);
      continue;
    }
    PagePlace& place = page.places[static_cast<size_t>(asked.page.layer)];
    place.generation = placement.generation;
    place.tier = asked.tier;
    place.t2_bits = asked.t2_bits;
    if (asked.page.layer == 0) ++sequence->stats.compressed_pages;
    for (PagePlace& each : page.places) each.map = MappedPage();
  }
  sequence->reads = SequenceReads();
  sequence->promotion = SequencePromotion();
  if (refusal.ok()) return;
  remote.compress_retry_at = Now() + RetryAfterOf(refusal).value_or(kRefused);
  if (!std::exchange(compress_refusal_logged_, true)) {
    spdlog::warn("node {}: pages stay in T1 (logged once): {}",
                 link(event.node).node_id(), std::string(refusal.message()));
  }
}

}  // namespace farkv
