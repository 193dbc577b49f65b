#include "gpu_worker/tiering/eviction_decision.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>
#include <variant>

#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tiering/node_decisions.h"

namespace farkv {
namespace {

// What one call of a policy borrows.
struct HeadInput {
  std::vector<int64_t> positions;
  std::vector<uint8_t> pinned;
  std::vector<const std::byte*> keys, values;
  std::vector<float> queries;
  std::vector<int64_t> cumulative;
};

class Decider {
 public:
  Decider(const Sequence& sequence, const PendingEvent& pending,
          const KvGeometry& geometry, RowReader* reader)
      : sequence_(sequence),
        pending_(pending),
        event_(pending.event),
        needs_(NeedsOf(event_.policy)),
        geometry_(geometry),
        reader_(reader) {}

  absl::StatusOr<EvictionDecision> Decide(int layer, int head) const {
    HeadInput owned;
    owned.positions = LivePositionsOf(sequence_.table, layer, head, geometry_,
                                      pending_.num_tokens);
    EvictionInput input;
    input.positions = owned.positions;
    input.num_tokens = pending_.num_tokens;
    input.num_kept = event_.num_kept;
    owned.pinned = PinRows(event_.pinned, owned.positions, input.num_tokens);
    input.pinned = owned.pinned;
    AddRows(head, owned, input);
    if (needs_.mass) {
      const QueryRing& queries = pending_.queries.has_value()
                                     ? *pending_.queries
                                     : sequence_.destruction.queries;
      input.window =
          queries.Window(layer, head, input.num_tokens, owned.queries);
    }
    if (needs_.cumulative) AddScores(layer, head, owned, input);
    input.draws.seed = sequence_.spec.destruction_seed;
    input.draws.request = RequestNumber(sequence_.spec.request_id);
    input.draws.layer = static_cast<uint64_t>(layer);
    input.draws.kv_head = static_cast<uint64_t>(head);
    input.draws.event = static_cast<uint64_t>(sequence_.stats.evictions);
    return DecideEviction(event_.policy, input);
  }

 private:
  void AddRows(int head, HeadInput& owned, EvictionInput& input) const {
    if (needs_.keys || needs_.mass) {
      for (const int64_t position : owned.positions) {
        owned.keys.push_back(reader_->Key(head, position));
      }
      input.keys = {owned.keys, geometry_.head_dim, geometry_.dtype};
    }
    if (needs_.values) {
      for (const int64_t position : owned.positions) {
        owned.values.push_back(reader_->Value(head, position));
      }
      input.values = {owned.values, geometry_.head_dim, geometry_.dtype};
    }
  }

  void AddScores(int layer, int head, HeadInput& owned,
                 EvictionInput& input) const {
    const auto& by_head = sequence_.destruction.head_scores;
    const std::vector<int64_t>& scores =
        by_head.empty()
            ? sequence_.scores
            : by_head[static_cast<size_t>(layer)][static_cast<size_t>(head)];
    for (const int64_t position : owned.positions) {
      owned.cumulative.push_back(scores[static_cast<size_t>(position)]);
    }
    input.cumulative = owned.cumulative;
  }

  const Sequence& sequence_;
  const PendingEvent& pending_;
  const DestructionEvent& event_;
  const PolicyNeeds needs_;
  const KvGeometry& geometry_;
  RowReader* const reader_;
};

}  // namespace

uint64_t RequestNumber(const std::string& request_id) {
  return CounterDraw(Crc32c(std::as_bytes(std::span(request_id))),
                     {request_id.size()});
}

int WindowOf(const DestructionPolicy& policy) {
  if (const auto* snap = std::get_if<SnapKvPolicy>(&policy)) {
    return snap->window.window;
  }
  if (const auto* rkv = std::get_if<RkvPolicy>(&policy)) {
    return rkv->window.window;
  }
  if (const auto* vase = std::get_if<VaseAttnVPolicy>(&policy)) {
    return vase->window.window;
  }
  return 0;
}

std::vector<int64_t> LivePositionsOf(const PageTable& table, int layer,
                                     int kv_head, const KvGeometry& geometry,
                                     int64_t end) {
  std::vector<int64_t> positions;
  for (int i = 0; i < table.num_pages(); ++i) {
    const int64_t first = int64_t{i} * kPageTokens;
    if (first >= end) break;
    uint64_t left =
        table.page(i).layer_live(layer, geometry.num_kv_heads)[kv_head];
    for (; left != 0; left &= left - 1) {
      const int64_t position = first + std::countr_zero(left);
      if (position < end) positions.push_back(position);
    }
  }
  return positions;
}

namespace {

// One layer, of rows that `reader` has.
absl::StatusOr<KeptRows> DecideHere(const Decider& decider, int layer,
                                    const KvGeometry& geometry, bool shared,
                                    const KeptRows& before) {
  KeptRows rows;
  for (int head = 0; head < geometry.num_kv_heads; ++head) {
    if (shared && layer + head > 0) {
      const auto& lists = layer > 0 ? before.kept : rows.kept;
      rows.kept.push_back(lists.front());
      continue;
    }
    FARKV_ASSIGN_OR_RETURN(EvictionDecision decision,
                           decider.Decide(layer, head));
    rows.num_non_finite += decision.num_non_finite;
    rows.kept.push_back(std::move(decision.kept));
  }
  return rows;
}

void Append(KeptRows more, KeptRows& rows) {
  rows.num_non_finite += more.num_non_finite;
  rows.layers_by_nodes += more.layers_by_nodes;
  std::move(more.kept.begin(), more.kept.end(), std::back_inserter(rows.kept));
}

KeptRows RowsOf(NodeDecisions::Layer layer) {
  KeptRows rows;
  rows.layers_by_nodes = layer.by_nodes ? 1 : 0;
  for (EvictionDecision& decision : layer.heads) {
    rows.num_non_finite += decision.num_non_finite;
    rows.kept.push_back(std::move(decision.kept));
  }
  return rows;
}

}  // namespace

absl::Status DecideLayers(const Sequence& sequence, PendingEvent& pending,
                          const KvGeometry& geometry, RowReader* reader,
                          NodeDecisions* nodes,
                          const std::function<bool()>& is_moot) {
  const Decider decider(sequence, pending, geometry, reader);
  const bool shared = NeedsOf(pending.event.policy).shared_by_heads;
  KeptRows& rows = pending.rows;
  const auto decided = static_cast<int>(rows.kept.size());
  for (int layer = decided / geometry.num_kv_heads; layer < geometry.num_layers;
       ++layer) {
    if (is_moot && is_moot()) {
      return absl::CancelledError("nobody wants this event");
    }
    if (nodes != nullptr) {
      auto made = nodes->DecideLayer(sequence, pending, layer, *reader);
      if (made.ok()) {
        Append(RowsOf(*std::move(made)), rows);
        continue;
      }
      nodes = nullptr;
    }
    if (reader != nullptr) FARKV_RETURN_IF_ERROR(reader->Load(layer));
    FARKV_ASSIGN_OR_RETURN(KeptRows made,
                           DecideHere(decider, layer, geometry, shared, rows));
    Append(std::move(made), rows);
  }
  return absl::OkStatus();
}

}  // namespace farkv
