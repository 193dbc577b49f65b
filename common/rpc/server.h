// A gRPC server with health and reflection, one address, optional TLS.
// Thread-safe after Start.
#ifndef FARKV_COMMON_RPC_SERVER_H_
#define FARKV_COMMON_RPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/tls_options.h"

// Not included: gRPC's headers take two seconds of every file that reads them.
namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace farkv {

class RpcServer {
 public:
  // Serves `services` (borrowed, they outlive the server) at host:port; port 0
  // takes any. ALREADY_EXISTS naming the address when it is taken,
  // INVALID_ARGUMENT naming the file when a certificate cannot be read.
  // Health reports NOT_SERVING until SetServing(true).
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const std::string& address, const TlsOptions& tls,
      const std::vector<grpc::Service*>& services);
  ~RpcServer();

  uint16_t port() const { return port_; }
  void SetServing(bool serving);
  // Refuses new calls, lets running ones finish up to `grace`, then cancels.
  void Shutdown(absl::Duration grace);

 private:
  RpcServer() = default;
  uint16_t port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_SERVER_H_
