// gRPC's own log lines. They repeat, in gRPC's words and with its source files,
// what we are told by a status, so a program sends them where they do not stand
// between its own lines.
#ifndef FARKV_COMMON_RPC_GRPC_LOG_H_
#define FARKV_COMMON_RPC_GRPC_LOG_H_

#include <string>

namespace farkv {

// To our log from now on: gRPC's errors as warnings, the rest as debug lines.
// For servers, whose log is the only place that names a client's failed
// handshake. Thread-safe.
void RouteGrpcLog();
// Nowhere: for clients, which print the status of each call. Thread-safe.
void DropGrpcLog();

// While it lives, holds what gRPC logs on this thread. One per thread at a
// time, and only after one of the two above.
class GrpcLogCapture {
 public:
  GrpcLogCapture();
  ~GrpcLogCapture();
  GrpcLogCapture(const GrpcLogCapture&) = delete;
  GrpcLogCapture& operator=(const GrpcLogCapture&) = delete;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_GRPC_LOG_H_
