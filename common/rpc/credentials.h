// gRPC credentials from TlsOptions, whose files are read again when they
// change. INVALID_ARGUMENT naming the flag or file. Thread-safe.
#ifndef FARKV_COMMON_RPC_CREDENTIALS_H_
#define FARKV_COMMON_RPC_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/tls_options.h"

namespace farkv {

// Clients are asked for a certificate when a CA is given (mutual TLS).
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsOptions& tls);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const TlsOptions& tls);

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_CREDENTIALS_H_
