// Limits that several policies' settings share.
#ifndef FARKV_COMMON_POLICY_LIMITS_H_
#define FARKV_COMMON_POLICY_LIMITS_H_

#include <cstdint>

namespace farkv {

// The most tokens that a setting or a call may name: what is larger is a slip,
// and sums of such numbers still fit.
inline constexpr int64_t kMaxPolicyTokens = int64_t{1} << 32;

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_LIMITS_H_
