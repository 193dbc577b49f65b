// The worker's log of destroyed rows <-> ListEvictions of AdminService. Pure.
#ifndef FARKV_GPU_WORKER_SERVICE_DECISION_LOG_CODEC_H_
#define FARKV_GPU_WORKER_SERVICE_DECISION_LOG_CODEC_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "farkv/admin/v1/admin.pb.h"
#include "gpu_worker/tiering/decision_log.h"

namespace farkv {

// Of one page of an answer; as many as the server shows at most.
inline constexpr int32_t kMaxDecisionsShown = 256;

// `list` as DecisionLog::List; `now` is of the clock that the log was written
// by. INVALID_ARGUMENT naming page_size and its range, page_token or
// session_id.
absl::StatusOr<farkv::admin::v1::ListEvictionsResponse> ListDecisions(
    const farkv::admin::v1::ListEvictionsRequest& request,
    const std::function<std::vector<LoggedEviction>(const DecisionQuery&)>&
        list,
    absl::Time now);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_SERVICE_DECISION_LOG_CODEC_H_
