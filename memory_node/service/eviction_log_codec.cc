#include "memory_node/service/eviction_log_codec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/duration_codec.h"

namespace farkv {
namespace {

using admin::v1::ListEvictionsResponse;

void DecisionToProto(const LoggedDecision& decision, absl::Time now,
                     ListEvictionsResponse::Decision& proto) {
  proto.set_decision_id(decision.id);
  proto.set_session_id(SessionHandleBytes(decision.session));
  proto.set_policy(decision.policy);
  proto.set_event(decision.event);
  proto.set_candidates(decision.candidates);
  proto.set_kept(decision.kept);
  *proto.mutable_age() = ToProto(now - decision.time);
  proto.set_heads(static_cast<int32_t>(decision.heads));
  proto.set_budget_tokens(decision.num_kept);
  proto.set_num_tokens(decision.num_tokens);
  proto.set_seed(decision.seed);
  proto.set_request(decision.request);
  proto.set_final_list(decision.final_list);
  proto.set_non_finite(decision.non_finite);
  proto.set_digest(decision.digest);
  proto.set_can_be_replayed(decision.call != nullptr);
}

}  // namespace

ListEvictionsResponse ToProto(const EvictionQuery& query,
                              const std::vector<LoggedDecision>& found,
                              absl::Time now) {
  ListEvictionsResponse response;
  const size_t shown = std::min(found.size(), query.count);
  for (size_t i = 0; i < shown; ++i) {
    DecisionToProto(found[i], now, *response.add_decisions());
  }
  if (found.size() > query.count) {
    response.set_next_page_token(absl::StrCat(found[shown - 1].id));
  }
  return response;
}

}  // namespace farkv
