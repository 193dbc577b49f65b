#include "gpu_worker/service/decision_log_codec.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/eviction_query.h"

namespace farkv {
namespace {

using admin::v1::ListEvictionsRequest;
using admin::v1::ListEvictionsResponse;

// Of a worker every decision is one in whole, and has been carried out.
void DecisionToProto(const LoggedEviction& event, absl::Time now,
                     ListEvictionsResponse::Decision& proto) {
  const EvictionRecord& record = event.record;
  proto.set_decision_id(event.id);
  proto.set_session_id(SessionHandleBytes(event.session));
  proto.set_policy(record.policy);
  proto.set_event(static_cast<uint64_t>(record.event));
  proto.set_candidates(event.candidates);
  proto.set_kept(event.kept);
  *proto.mutable_age() = ToProto(now - event.time);
  proto.set_heads(static_cast<int32_t>(record.kept_digests.size()));
  proto.set_budget_tokens(record.num_kept);
  proto.set_num_tokens(record.num_tokens);
  proto.set_seed(event.seed);
  proto.set_request(event.request);
  proto.set_final_list(true);
  proto.set_non_finite(event.non_finite);
  proto.set_digest(event.digest());
  proto.set_destroyed_rows(record.destroyed_rows);
  proto.set_request_id(event.request_id);
  proto.set_layers_by_nodes(event.layers_by_nodes);
}

}  // namespace

absl::StatusOr<ListEvictionsResponse> ListDecisions(
    const ListEvictionsRequest& request,
    const std::function<std::vector<LoggedEviction>(const DecisionQuery&)>&
        list,
    absl::Time now) {
  FARKV_ASSIGN_OR_RETURN(const EvictionQuery query,
                         ReadQuery(request, kMaxDecisionsShown));
  // The last one says that there is a next page.
  const std::vector<LoggedEviction> found = list({.before = query.before,
                                                  .count = query.count + 1,
                                                  .sessions = query.sessions});
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
