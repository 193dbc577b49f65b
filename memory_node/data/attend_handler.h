// Pushdown on the node: leaves of stored pages, computed where they lie, merged
// to maximal aligned subtrees. DESIGN 5.5, common/page/bodies.h. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_ATTEND_HANDLER_H_
#define FARKV_MEMORY_NODE_DATA_ATTEND_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"
#include "common/page/attend_limits.h"
#include "memory_node/data/attend_scores.h"
#include "memory_node/data/data_metrics.h"
#include "memory_node/directory/directory.h"

namespace farkv {

// What an attend request needs besides itself; everything is borrowed.
struct AttendContext {
  Directory& directory;
  AttendScores& scores;
  ThreadPool& pool;  // computes; shared by all requests
  DataMetrics& metrics;
  // Of one request.
  uint64_t max_leaf_bytes = kMaxAttendLeafBytes;
};

// Whose message, and what its header says.
struct AttendCall {
  std::string tenant;
  Epoch epoch;
  int32_t layer = 0;
  uint64_t step = 0;
};

// The body of an AttendReply. A sequence whose session or pages cannot be used
// carries its own code and no subtrees; the others are answered. The error of
// the whole message when it cannot be decoded or names a session twice. The
// leaves' weights are kept for the scores (attend_scores.h).
absl::StatusOr<std::vector<std::byte>> AttendPages(
    const AttendContext& context, const AttendCall& call,
    std::span<const std::byte> body);

// The body of a ScoresReply for the caller's session.
absl::StatusOr<std::vector<std::byte>> CollectScores(
    const AttendContext& context, const DataCaller& caller,
    std::span<const std::byte> body);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_ATTEND_HANDLER_H_
