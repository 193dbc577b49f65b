// The end of a unary call whose answer is ready at once.
#ifndef FARKV_COMMON_RPC_UNARY_ANSWER_H_
#define FARKV_COMMON_RPC_UNARY_ANSWER_H_

#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "common/rpc/status_codec.h"

namespace farkv {

// Finishes the call; the reactor belongs to gRPC. The response must be filled
// before.
inline grpc::ServerUnaryReactor* AnswerUnary(
    grpc::CallbackServerContext* context,
    const absl::Status& status = absl::OkStatus()) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_UNARY_ANSWER_H_
