// EvictionCall and its answer <-> protobuf. FromProto checks what a message
// alone can get wrong (the ids, the policy and its settings, the size): the
// rest is EvictionCall::Validate's. Errors name field and values. Pure.
#ifndef FARKV_COMMON_RPC_EVICTION_CODEC_H_
#define FARKV_COMMON_RPC_EVICTION_CODEC_H_

#include "absl/status/statusor.h"
#include "common/policy/eviction_call.h"
#include "farkv/memory/v1/memory.pb.h"

namespace farkv {

// Settings that say when a policy acts, or how mass is computed from queries,
// are not carried: both happened before the call.
farkv::memory::v1::DecideEvictionsRequest ToProto(const EvictionCall& call);
// INVALID_ARGUMENT: UNSPECIFIED or unknown policy, a setting that the policy
// does not have or out of range, more than kMaxCandidates.
absl::StatusOr<EvictionCall> FromProto(
    const farkv::memory::v1::DecideEvictionsRequest& request);

farkv::memory::v1::DecideEvictionsResponse ToProto(const EvictionReply& reply);
absl::StatusOr<EvictionReply> FromProto(
    const farkv::memory::v1::DecideEvictionsResponse& response);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_EVICTION_CODEC_H_
