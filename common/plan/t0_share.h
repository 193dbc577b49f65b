// The share of T0 that a sequence is promised when it is admitted. DESIGN 13:
// planned beta part + tail + two intervals; the whole context without nodes.
// Pure.
#ifndef FARKV_COMMON_PLAN_T0_SHARE_H_
#define FARKV_COMMON_PLAN_T0_SHARE_H_

#include <cstdint>

#include "common/layout/kv_geometry.h"
#include "common/policy/placement_settings.h"

namespace farkv {

// Bytes of a line of `granularity` positions of one layer, a multiple of 64,
// and of a set of lines: one for each layer.
uint64_t T0LineBytes(const KvGeometry& geometry, int granularity);
uint64_t T0SetBytes(const KvGeometry& geometry, int granularity);

// Line sets of placement.granularity positions. `max_tokens`: prompt and every
// token that may follow.
int64_t T0ShareInSets(const PlacementSettings& placement, int64_t prompt_tokens,
                      int64_t max_tokens, bool has_nodes);

}  // namespace farkv

#endif  // FARKV_COMMON_PLAN_T0_SHARE_H_
