// Domain types of the memory control plane <-> protobuf. FromProto functions
// check counts, ranges and sizes: INVALID_ARGUMENT naming field and values.
// Pure.
#ifndef FARKV_COMMON_RPC_MEMORY_CODEC_H_
#define FARKV_COMMON_RPC_MEMORY_CODEC_H_

#include "absl/status/statusor.h"
#include "common/rpc/memory_types.h"
#include "farkv/memory/v1/memory.pb.h"
#include "farkv/types/v1/types.pb.h"

namespace farkv {

farkv::types::v1::KvGeometry ToProto(const KvGeometry& geometry);
absl::StatusOr<KvGeometry> FromProto(
    const farkv::types::v1::KvGeometry& geometry);
farkv::types::v1::Handshake ToProto(const Handshake& handshake);
Handshake FromProto(const farkv::types::v1::Handshake& handshake);
farkv::types::v1::Tier ToProto(Tier tier);

farkv::memory::v1::OpenSessionRequest ToProto(const OpenSessionCall& call);
absl::StatusOr<OpenSessionCall> FromProto(
    const farkv::memory::v1::OpenSessionRequest& request);
farkv::memory::v1::OpenSessionResponse ToProto(const SessionGrant& grant);
absl::StatusOr<SessionGrant> FromProto(
    const farkv::memory::v1::OpenSessionResponse& response);

farkv::memory::v1::ApplyTierPlanRequest ToProto(const TierPlanCall& call);
absl::StatusOr<TierPlanCall> FromProto(
    const farkv::memory::v1::ApplyTierPlanRequest& request);
farkv::memory::v1::ApplyTierPlanResponse ToProto(const TierPlanResult& result);
absl::StatusOr<TierPlanResult> FromProto(
    const farkv::memory::v1::ApplyTierPlanResponse& response);

farkv::memory::v1::RenewLeasesResponse ToProto(const RenewResult& result);
absl::StatusOr<RenewResult> FromProto(
    const farkv::memory::v1::RenewLeasesResponse& response);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_MEMORY_CODEC_H_
