// absl::Duration <-> google.protobuf.Duration. Pure.
#ifndef FARKV_COMMON_RPC_DURATION_CODEC_H_
#define FARKV_COMMON_RPC_DURATION_CODEC_H_

#include <google/protobuf/duration.pb.h>

#include "absl/time/time.h"

namespace farkv {

inline google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return proto;
}

inline absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_DURATION_CODEC_H_
