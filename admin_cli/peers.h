// Calls one method of the admin service on many processes, one by one.
#ifndef FARKV_ADMIN_CLI_PEERS_H_
#define FARKV_ADMIN_CLI_PEERS_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin_cli/options.h"
#include "farkv/admin/v1/admin_service.grpc.pb.h"

namespace farkv {

using AdminStub = farkv::admin::v1::AdminService::Stub;

// Admin addresses of nodes, then of workers.
std::vector<std::string> Everyone(const CliOptions& options);

// A channel to `address`, with the TLS settings of the options.
// `reconnect_ms`: the longest time between two tries to connect; 0: gRPC's.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const CliOptions& options,
                                                    const std::string& address,
                                                    int reconnect_ms = 0);

// Prints "error: ADDRESS: CODE: message" and what to try, to stderr.
// `answered`: the process at the address said so itself.
void PrintError(const std::string& address, const absl::Status& status,
                bool answered = false);

// No answer came, or the process does not serve now.
bool IsUnreachable(const absl::Status& status);

// Of a command that asked `asked` processes: ok; partial when some failed; when
// all did, unhealthy if none could be reached, else error.
int ExitCodeOf(size_t asked, size_t failed, size_t unreachable);

// Runs `call` for each address; it fills in a context with the deadline set.
// Returns the exit code.
int ForEachPeer(const CliOptions& options,
                const std::vector<std::string>& addresses,
                const std::function<
                    grpc::Status(AdminStub& stub, grpc::ClientContext* context,
                                 const std::string& address)>& call);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_PEERS_H_
