// The log of decisions <-> ListEvictions of AdminService. Pure.
#ifndef FARKV_MEMORY_NODE_SERVICE_EVICTION_LOG_CODEC_H_
#define FARKV_MEMORY_NODE_SERVICE_EVICTION_LOG_CODEC_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/session_handle.h"
#include "farkv/admin/v1/admin.pb.h"
#include "memory_node/data/eviction_log.h"

namespace farkv {

// What a call asks the log for.
struct EvictionQuery {
  uint64_t before = EvictionLog::kNewest;
  size_t count = 0;
  std::optional<SessionPattern> sessions;
};

// INVALID_ARGUMENT naming page_size and its range, page_token or session_id.
absl::StatusOr<EvictionQuery> ReadQuery(
    const farkv::admin::v1::ListEvictionsRequest& request,
    int32_t max_page_size);

// `found`: up to one more than the query's count, newest first. That one is not
// shown; it says that there is a next page.
farkv::admin::v1::ListEvictionsResponse ToProto(
    const EvictionQuery& query, const std::vector<LoggedDecision>& found,
    absl::Time now);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_EVICTION_LOG_CODEC_H_
