// What ListEvictions of the admin API asks a log of decisions for. Pure.
#ifndef FARKV_COMMON_RPC_EVICTION_QUERY_H_
#define FARKV_COMMON_RPC_EVICTION_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/session_handle.h"
#include "farkv/admin/v1/admin.pb.h"

namespace farkv {

// Up to `count` decisions with ids below `before`, newest first; of the
// sessions that `sessions` matches, of all without it.
struct EvictionQuery {
  uint64_t before = std::numeric_limits<uint64_t>::max();
  size_t count = 0;
  std::optional<SessionPattern> sessions;
};

// INVALID_ARGUMENT naming page_size and its range, page_token or session_id.
absl::StatusOr<EvictionQuery> ReadQuery(
    const farkv::admin::v1::ListEvictionsRequest& request,
    int32_t max_page_size);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_EVICTION_QUERY_H_
