// What one attend request may cost its node; whoever sends it has to know.
// Pure.
#ifndef FARKV_COMMON_PAGE_ATTEND_LIMITS_H_
#define FARKV_COMMON_PAGE_ATTEND_LIMITS_H_

#include <cstdint>

#include "common/layout/kv_geometry.h"

namespace farkv {

// The most that the leaves of a request may take, pages without live rows
// included. A sequence with more is sent in several requests.
inline constexpr uint64_t kMaxAttendLeafBytes = uint64_t{256} << 20;

// A leaf has, per query head, 64 weights and a partial.
inline uint64_t AttendLeafBytes(int num_query_heads, int head_dim) {
  return sizeof(float) * static_cast<uint64_t>(num_query_heads) *
         (uint64_t{kPageTokens} + 2 + static_cast<uint64_t>(head_dim));
}

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_ATTEND_LIMITS_H_
