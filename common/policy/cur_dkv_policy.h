// CurDKV (arXiv 2509.15038, ALGORITHMS 6): product of the projected norms of
// key and value. Needs no queries, so the node that holds the rows can rank
// them. Pure.
#ifndef FARKV_COMMON_POLICY_CUR_DKV_POLICY_H_
#define FARKV_COMMON_POLICY_CUR_DKV_POLICY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"

namespace farkv {

// Reads: keys and values. The projection is drawn once per request and layer
// and never again.
struct CurDkvPolicy {
  int64_t buffer = 64;  // youngest tokens, always kept (VaSE's frame)
  int64_t sinks = 4;    // positions [0, sinks), always kept
  int32_t rank = 20;    // of the projection

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

// |G k_i|^2 * |G v_i|^2 per row, G of rank x dim, row-major. The published
// score divides by the sum over all rows, which no ranking notices and a party
// that has a part of the rows could not do. INVALID_ARGUMENT when keys and
// values differ in shape or G does not fit.
absl::StatusOr<std::vector<float>> ProjectedProducts(
    const EvictionInput& input, std::span<const float> projection);

// The ranking by ProjectedProducts that CurDKV and VaSE-DKV share. `draws` says
// when the projection changes.
absl::StatusOr<RankedRows> RankByProjection(const CurDkvPolicy& policy,
                                            const EvictionInput& input,
                                            const PolicyDraws& draws);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_CUR_DKV_POLICY_H_
