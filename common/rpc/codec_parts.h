// Small converters that the codecs of common/rpc share. Pure.
#ifndef FARKV_COMMON_RPC_CODEC_PARTS_H_
#define FARKV_COMMON_RPC_CODEC_PARTS_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/memory_types.h"
#include "farkv/memory/v1/memory.pb.h"

namespace farkv {

farkv::memory::v1::PageName ToProto(const PageName& name);
// INVALID_ARGUMENT when a number is negative.
absl::StatusOr<PageName> FromProto(const farkv::memory::v1::PageName& name);
absl::StatusOr<Tier> FromProto(farkv::types::v1::Tier tier);

// INVALID_ARGUMENT naming `field`, the count and the limit.
absl::Status CheckCount(const char* field, int64_t count, int64_t limit);

inline std::vector<uint64_t> ToVector(
    const google::protobuf::RepeatedField<uint64_t>& field) {
  return std::vector<uint64_t>(field.begin(), field.end());
}

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_CODEC_PARTS_H_
