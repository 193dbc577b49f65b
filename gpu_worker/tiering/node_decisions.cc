#include "gpu_worker/tiering/node_decisions.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/policy/eviction_merge.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/eviction_decision.h"

namespace farkv {
namespace {

// Policies whose rows are ranked one by one, by nothing but what is stored.
bool RanksStoredRows(const DestructionPolicy& policy) {
  const PolicyNeeds needs = NeedsOf(policy);
  return needs.rows_alone && (needs.keys || needs.values) && !needs.mass &&
         !needs.cumulative;
}

EvictionCall WithoutHeads(const EvictionCall& event) {
  EvictionCall call = event;
  call.heads.clear();
  return call;
}

// Adds a candidate of `head` to the head of the same name, the last of `call`.
void AddCandidate(const EvictionHead& head, int64_t position,
                  EvictionCall& call) {
  if (call.heads.empty() || call.heads.back().kv_head != head.kv_head) {
    call.heads.push_back({.layer = head.layer, .kv_head = head.kv_head});
  }
  call.heads.back().positions.push_back(position);
}

// Cold candidates go to the node that has their page, the others to `own`.
void Divide(const Sequence& sequence, const EvictionCall& event,
            std::vector<EvictionCall>& by_node, EvictionCall& own) {
  for (const EvictionHead& head : event.heads) {
    for (const int64_t position : head.positions) {
      const auto index = static_cast<int>(position / kPageTokens);
      const uint64_t cold = sequence.table.page(index).cold();
      if ((cold >> (position % kPageTokens) & 1) == 0) {
        AddCandidate(head, position, own);
        continue;
      }
      const int node = sequence.remote.pages[static_cast<size_t>(index)].node;
      AddCandidate(head, position, by_node[static_cast<size_t>(node)]);
    }
  }
}

// A decision keeps what must stay, as many rows as it may, and none that it was
// not asked about.
absl::Status CheckDecision(const EvictionCall& call, const EvictionHead& head,
                           const EvictionDecision& decision) {
  const std::vector<int64_t>& kept = decision.kept;
  const std::vector<int64_t> all = HeadRows::Of(head).positions;
  const auto expected =
      std::min(static_cast<size_t>(call.num_kept), all.size());
  const bool fits =
      kept.size() == expected && std::is_sorted(kept.begin(), kept.end()) &&
      std::adjacent_find(kept.begin(), kept.end()) == kept.end() &&
      std::includes(all.begin(), all.end(), kept.begin(), kept.end()) &&
      std::includes(kept.begin(), kept.end(), head.always_kept.begin(),
                    head.always_kept.end());
  if (fits) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("layer ", head.layer, ", head ", head.kv_head,
                   ": the answer keeps ", kept.size(), " rows where ", expected,
                   " of ", all.size(), " may stay, or others than these"));
}

absl::StatusOr<std::vector<EvictionDecision>> DecisionsOf(
    const EvictionCall& event, const std::vector<EvictionReply>& replies) {
  std::vector<EvictionDecision> decisions;
  for (const EvictionReply& reply : replies) {
    for (const RankedHead& head : reply.heads) {
      decisions.push_back(head.decision);
    }
  }
  if (decisions.size() != event.heads.size()) {
    return absl::InternalError(absl::StrCat(decisions.size(), " decisions for ",
                                            event.heads.size(), " heads"));
  }
  for (size_t i = 0; i < decisions.size(); ++i) {
    FARKV_RETURN_IF_ERROR(CheckDecision(event, event.heads[i], decisions[i]));
  }
  return decisions;
}

}  // namespace

NodeDecisions::NodeDecisions(const TieringOptions& options,
                             const KvGeometry& geometry,
                             std::span<const std::unique_ptr<NodeLink>> links,
                             const Clock& clock)
    : options_(options),
      geometry_(geometry),
      links_(links),
      clock_(clock),
      pool_(options.cold == ColdMode::kPushdown ||
                    options.cold == ColdMode::kAuto
                ? static_cast<int>(links.size())
                : 1),
      pauses_(links.size()) {}

bool NodeDecisions::MayAsk(const Sequence& sequence, int node) const {
  const auto index = static_cast<size_t>(node);
  const auto& session = sequence.remote.nodes[index].session;
  return links_[index]->healthy() && pauses_[index].Over(clock_.Now()) &&
         session != nullptr && session->Usable(Clock::Boottime().Now());
}

bool NodeDecisions::PushesTo(int node) const {
  if (options_.cold != ColdMode::kAuto) {
    return options_.cold == ColdMode::kPushdown;
  }
  NodeLink& link = *links_[static_cast<size_t>(node)];
  return !link.maps() && link.rates().choice().mode == ColdMode::kPushdown;
}

bool NodeDecisions::MayDecide(const Sequence& sequence,
                              const DestructionPolicy& policy) const {
  if (!RanksStoredRows(policy)) return false;
  bool some = false;
  for (int i = 0; i < sequence.table.num_pages(); ++i) {
    if (sequence.table.page(i).cold() == 0) continue;
    const int node = sequence.remote.pages[static_cast<size_t>(i)].node;
    if (node < 0 || !PushesTo(node) || !MayAsk(sequence, node)) return false;
    some = true;
  }
  return some;
}

EvictionCall NodeDecisions::EventOf(const Sequence& sequence,
                                    const PendingEvent& pending,
                                    int layer) const {
  EvictionCall event;
  event.session = sequence.spec.session;
  event.event = static_cast<uint64_t>(sequence.stats.evictions);
  event.policy = pending.event.policy;
  event.num_kept = pending.event.num_kept;
  event.num_tokens = pending.num_tokens;
  event.seed = sequence.spec.destruction_seed;
  event.request = RequestNumber(sequence.spec.request_id);
  for (int h = 0; h < geometry_.num_kv_heads; ++h) {
    EvictionHead& head = event.heads.emplace_back();
    head.layer = layer;
    head.kv_head = h;
    const std::vector<int64_t> positions = LivePositionsOf(
        sequence.table, layer, h, geometry_, pending.num_tokens);
    const std::vector<uint8_t> pinned =
        PinRows(pending.event.pinned, positions, pending.num_tokens);
    for (size_t i = 0; i < positions.size(); ++i) {
      (pinned[i] != 0 ? head.always_kept : head.positions)
          .push_back(positions[i]);
    }
  }
  return event;
}

int NodeDecisions::NodeOfAll(const Sequence& sequence,
                             const EvictionCall& event) const {
  int node = -1;
  for (const EvictionHead& head : event.heads) {
    const size_t rows =
        std::max(head.positions.size(), head.always_kept.size());
    if (rows > size_t{kMaxCandidates}) return -1;
    for (const int64_t position : head.positions) {
      const auto index = static_cast<int>(position / kPageTokens);
      if (sequence.table.page(index).state != StoreState::kStored) return -1;
      const int of_page =
          sequence.remote.pages[static_cast<size_t>(index)].node;
      if (of_page < 0 || (node >= 0 && of_page != node)) return -1;
      node = of_page;
    }
  }
  return node >= 0 && MayAsk(sequence, node) ? node : -1;
}

absl::StatusOr<EvictionReply> NodeDecisions::RankOwn(const EvictionCall& own,
                                                     int layer,
                                                     RowReader& reader) const {
  reader.LoadResident(layer);
  EvictionReply reply;
  for (const EvictionHead& head : own.heads) {
    std::vector<const std::byte*> keys, values;
    for (const int64_t position : head.positions) {
      keys.push_back(reader.Key(head.kv_head, position));
      values.push_back(reader.Value(head.kv_head, position));
    }
    FARKV_ASSIGN_OR_RETURN(
        RankedHead ranked,
        RankHead(own, head, HeadRows::Of(head),
                 {keys, geometry_.head_dim, geometry_.dtype},
                 {values, geometry_.head_dim, geometry_.dtype}));
    reply.heads.push_back(std::move(ranked));
  }
  return reply;
}

absl::StatusOr<std::vector<EvictionReply>> NodeDecisions::AskNode(
    int node, const EvictionCall& call) const {
  NodeLink& link = *links_[static_cast<size_t>(node)];
  FARKV_ASSIGN_OR_RETURN(const std::vector<EvictionCall> parts,
                         SplitCall(call));
  std::vector<EvictionReply> replies;
  for (const EvictionCall& part : parts) {
    absl::StatusOr<EvictionReply> reply =
        link.DecideEvictions(part, options_.fetch_timeout);
    // A page moved while it was read.
    if (absl::IsAborted(reply.status())) {
      reply = link.DecideEvictions(part, options_.fetch_timeout);
    }
    FARKV_RETURN_IF_ERROR(reply.status());
    replies.push_back(*std::move(reply));
  }
  return replies;
}

absl::Status NodeDecisions::Distrust(int node, const absl::Status& why) {
  const auto index = static_cast<size_t>(node);
  pauses_[index].Failed(clock_.Now());
  spdlog::warn("node {}: did not decide, rows are read for a while: {}",
               links_[index]->node_id(), std::string(why.message()));
  return why;
}

absl::StatusOr<std::vector<EvictionReply>> NodeDecisions::Ask(
    const std::vector<EvictionCall>& by_node) {
  std::vector<int> nodes;
  for (size_t i = 0; i < by_node.size(); ++i) {
    if (!by_node[i].heads.empty()) nodes.push_back(static_cast<int>(i));
  }
  std::vector<absl::StatusOr<std::vector<EvictionReply>>> answers(nodes.size());
  pool_.ParallelFor(static_cast<int64_t>(nodes.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    answers[at] = AskNode(nodes[at], by_node[static_cast<size_t>(nodes[at])]);
  });
  std::vector<EvictionReply> replies;
  absl::Status status;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!answers[i].ok()) {
      status.Update(Distrust(nodes[i], answers[i].status()));
      continue;
    }
    std::move(answers[i]->begin(), answers[i]->end(),
              std::back_inserter(replies));
  }
  FARKV_RETURN_IF_ERROR(status);
  return replies;
}

absl::StatusOr<NodeDecisions::Layer> NodeDecisions::DecideLayer(
    const Sequence& sequence, const PendingEvent& pending, int layer,
    RowReader& reader) {
  EvictionCall event = EventOf(sequence, pending, layer);
  std::vector<EvictionCall> by_node(links_.size(), WithoutHeads(event));
  EvictionCall own = WithoutHeads(event);
  const int node_of_all = NodeOfAll(sequence, event);
  event.final_list = node_of_all >= 0;
  if (event.final_list) {
    by_node[static_cast<size_t>(node_of_all)] = event;
  } else {
    Divide(sequence, event, by_node, own);
  }
  FARKV_ASSIGN_OR_RETURN(std::vector<EvictionReply> replies, Ask(by_node));
  Layer decided;
  decided.by_nodes = !replies.empty();
  absl::StatusOr<std::vector<EvictionDecision>> heads;
  if (event.final_list) {
    heads = DecisionsOf(event, replies);
  } else {
    FARKV_ASSIGN_OR_RETURN(EvictionReply ranked, RankOwn(own, layer, reader));
    replies.push_back(std::move(ranked));
    heads = MergeReplies(event, replies);
  }
  for (size_t i = 0; i < by_node.size(); ++i) {
    if (by_node[i].heads.empty()) continue;
    if (heads.ok()) {
      pauses_[i].Succeeded();
    } else {
      Distrust(static_cast<int>(i), heads.status()).IgnoreError();
    }
  }
  FARKV_ASSIGN_OR_RETURN(decided.heads, std::move(heads));
  return decided;
}

}  // namespace farkv
