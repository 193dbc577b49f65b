// Keys of the policies that rank by cumulative attention. Internal to
// common/policy. Pure.
#ifndef FARKV_COMMON_POLICY_CUMULATIVE_KEYS_H_
#define FARKV_COMMON_POLICY_CUMULATIVE_KEYS_H_

#include "absl/status/status.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"

namespace farkv {

// The input's cumulative attention, else its mass, as keys of the rows that are
// not pinned. A sum is exact as a key below 2^53, a mass of 8,192. A sum below
// zero is broken and counts as not finite. INVALID_ARGUMENT when the input is,
// or has neither.
absl::Status SetCumulativeKeys(const EvictionInput& input, const char* policy,
                               RankedRows& ranked);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_CUMULATIVE_KEYS_H_
