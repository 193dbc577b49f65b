// What one attend request may cost its node; whoever sends it has to know.
// Pure.
#ifndef FARKV_COMMON_PAGE_ATTEND_LIMITS_H_
#define FARKV_COMMON_PAGE_ATTEND_LIMITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/layout/kv_geometry.h"
#include "common/page/bodies.h"

namespace farkv {

// The most that the leaves of a request may take, pages without live rows
// included. A sequence with more is sent in several requests.
inline constexpr uint64_t kMaxAttendLeafBytes = uint64_t{256} << 20;

// A leaf has, per query head, 64 weights and a partial.
inline uint64_t AttendLeafBytes(int num_query_heads, int head_dim) {
  return sizeof(float) * static_cast<uint64_t>(num_query_heads) *
         (uint64_t{kPageTokens} + 2 + static_cast<uint64_t>(head_dim));
}

// What a page adds to a reply at the most: where its neighbours are elsewhere
// it is a subtree of its own.
inline uint64_t AttendSubtreeBytes(int num_query_heads, int head_dim) {
  return 2 * sizeof(uint32_t) + sizeof(float) *
                                    static_cast<uint64_t>(num_query_heads) *
                                    (2 + static_cast<uint64_t>(head_dim));
}

// So many pages of one sequence fit into a request with `max_leaf_bytes` of
// leaves, however they lie; 1 at least.
inline size_t MaxAttendPages(int num_query_heads, int head_dim,
                             uint64_t max_leaf_bytes) {
  constexpr uint64_t kOtherBytes = uint64_t{1} << 20;  // of the reply
  const uint64_t most =
      std::min({max_leaf_bytes / AttendLeafBytes(num_query_heads, head_dim),
                (uint64_t{kMaxMessageBytes} - kOtherBytes) /
                    AttendSubtreeBytes(num_query_heads, head_dim),
                uint64_t{kMaxMessageItems}});
  return static_cast<size_t>(std::max<uint64_t>(most, 1));
}

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_ATTEND_LIMITS_H_
