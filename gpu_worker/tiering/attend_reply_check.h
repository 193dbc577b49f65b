// What a worker believes of an attend reply. Pure.
#ifndef FARKV_GPU_WORKER_TIERING_ATTEND_REPLY_CHECK_H_
#define FARKV_GPU_WORKER_TIERING_ATTEND_REPLY_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "common/page/bodies.h"

namespace farkv {

// OK when every sequence of `request` was answered with subtrees that cover
// just its pages, in order: a leaf more or less would be a wrong result that
// nothing else notices. A sequence's own error, or DATA_LOSS naming what is
// wrong.
absl::Status CheckAttendReply(const AttendRequest& request,
                              const std::vector<AttendSequenceReply>& replies);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_ATTEND_REPLY_CHECK_H_
