#include "common/rpc/eviction_query.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"

namespace farkv {

using admin::v1::ListEvictionsRequest;

absl::StatusOr<EvictionQuery> ReadQuery(const ListEvictionsRequest& request,
                                        int32_t max_page_size) {
  FARKV_RETURN_IF_ERROR(
      CheckRange("page_size", request.page_size(), 0, max_page_size));
  EvictionQuery query;
  query.count = static_cast<size_t>(
      request.page_size() == 0 ? max_page_size : request.page_size());
  if (!request.page_token().empty() &&
      !absl::SimpleAtoi(request.page_token(), &query.before)) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token is ", ShownText(request.page_token()),
                     ", not one of this server's"));
  }
  if (!request.session_id().empty()) {
    FARKV_ASSIGN_OR_RETURN(query.sessions,
                           SessionPattern::FromBytes(request.session_id()));
  }
  return query;
}

}  // namespace farkv
