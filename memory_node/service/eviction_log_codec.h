// The log of decisions <-> ListEvictions of AdminService. Pure.
#ifndef FARKV_MEMORY_NODE_SERVICE_EVICTION_LOG_CODEC_H_
#define FARKV_MEMORY_NODE_SERVICE_EVICTION_LOG_CODEC_H_

#include <vector>

#include "absl/time/time.h"
#include "common/rpc/eviction_query.h"
#include "farkv/admin/v1/admin.pb.h"
#include "memory_node/data/eviction_log.h"

namespace farkv {

// `found`: up to one more than the query's count, newest first. That one is not
// shown; it says that there is a next page.
farkv::admin::v1::ListEvictionsResponse ToProto(
    const EvictionQuery& query, const std::vector<LoggedDecision>& found,
    absl::Time now);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_EVICTION_LOG_CODEC_H_
