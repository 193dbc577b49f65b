// Pushdown: the scores that nodes have gathered come back.
#include <utility>

#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
#include "gpu_worker/tiering/pushdown.h"

namespace farkv {

// A request for the scores of one node, and its answer.
struct Pushdown::Collection {
  int node = 0;
  std::shared_ptr<std::vector<PageScores>> pages;
  std::shared_ptr<NodeCall> call;  // null: it could not be sent
};

Pushdown::Collection Pushdown::StartCollection(
    Sequence& sequence, int node, const std::set<int32_t>& pages) const {
  ScoresRequest request;
  request.num_query_heads = num_query_heads_;
  request.collection = sequence.pushdown.collection;
  const std::vector<AttendGlobals>& globals = sequence.pushdown.globals[node];
  for (size_t layer = 0; layer < globals.size(); ++layer) {
    if (globals[layer].m.empty()) continue;  // the node never attended there
    request.layers.push_back({static_cast<int32_t>(layer), globals[layer]});
  }
  request.pages.assign(pages.begin(), pages.end());
  Collection made{node, std::make_shared<std::vector<PageScores>>(), nullptr};
  auto body = EncodeScoresRequest(request);
  if (!body.ok()) return made;
  MessageHeader header;
  header.type = MessageType::kScoresRequest;
  header.session = sequence.spec.session;
  header.step = step_;
  made.call = NodeCall::Start(
      *links_[static_cast<size_t>(node)], header, *std::move(body),
      options_.fetch_timeout,
      [into = made.pages](const Message& reply) -> absl::Status {
        FARKV_ASSIGN_OR_RETURN(*into, DecodeScoresReply(reply.body.bytes()));
        return absl::OkStatus();
      });
  return made;
}

void Pushdown::CollectScores(Sequence& sequence) {
  sequence.stats.lost_score_collections += Collect(sequence, Nodes());
}

bool Pushdown::CollectAllScores(Sequence& sequence) {
  std::vector<bool> answering;
  for (const auto& link : links_) {
    answering.push_back(link->healthy() &&
                        !sequence.loss.nodes.contains(link->index()));
  }
  for (const auto& [node, pages] : sequence.pushdown.pages) {
    if (!answering[static_cast<size_t>(node)]) return false;
  }
  return Collect(sequence, answering) == 0;
}

int Pushdown::Collect(Sequence& sequence, const std::vector<bool>& answering) {
  SequencePushdown& state = sequence.pushdown;
  if (state.pages.empty()) return 0;
  int lost = 0;
  ++state.collection;
  std::vector<Collection> collections;
  for (const auto& [node, pages] : state.pages) {
    if (answering[static_cast<size_t>(node)]) {
      collections.push_back(StartCollection(sequence, node, pages));
    } else {
      ++lost;
    }
  }
  state.pages.clear();
  for (const Collection& collection : collections) {
    const absl::Status status = collection.call == nullptr
                                    ? absl::InternalError("not sent")
                                    : collection.call->Wait();
    if (!status.ok()) {
      ++lost;
      {
        absl::MutexLock lock(&mutex_);
        pauses_[static_cast<size_t>(collection.node)].Failed(clock_.Now());
      }
      spdlog::warn("sequence {}: scores gathered by node {} are lost: {}",
                   sequence.spec.request_id,
                   links_[static_cast<size_t>(collection.node)]->node_id(),
                   std::string(status.message()));
      continue;
    }
    for (const PageScores& page : *collection.pages) {
      const auto first =
          static_cast<size_t>(page.page_index) * size_t{kPageTokens};
      for (size_t s = 0; s < kPageTokens && first + s < sequence.scores.size();
           ++s) {
        sequence.scores[first + s] += page.sums[s];
      }
    }
  }
  if (lost > 0) state.is_incomplete = true;
  return lost;
}

}  // namespace farkv
