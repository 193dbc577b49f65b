#include "admin_cli/peers.h"

#include <chrono>
#include <iostream>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "common/rpc/credentials.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/status_codec.h"

namespace farkv {

std::vector<std::string> Everyone(const CliOptions& options) {
  std::vector<std::string> all = options.nodes;
  all.insert(all.end(), options.workers.begin(), options.workers.end());
  return all;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const CliOptions& options,
                                                    const std::string& address,
                                                    int reconnect_ms) {
  FARKV_ASSIGN_OR_RETURN(auto credentials, MakeChannelCredentials(options.tls));
  grpc::ChannelArguments arguments;
  if (reconnect_ms > 0) {
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, reconnect_ms);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, reconnect_ms);
  }
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

void PrintError(const std::string& address, const absl::Status& status,
                bool answered) {
  std::cerr << "error: " << address << ": "
            << absl::StatusCodeToString(status.code()) << ": "
            << status.message() << "\n";
  if (ReasonOf(status) != ErrorReason::kUnspecified) {
    std::cerr << "reason: " << ErrorReasonName(ReasonOf(status)) << "\n";
  }
  // gRPC's words when it found nobody; a process that ends or drains says
  // others.
  if (absl::IsUnavailable(status) && !answered &&
      absl::StrContains(status.message(), "connect to")) {
    std::cerr << "hint: is the process running, and is this its address "
                 "(--admin-listen for get and describe, --listen for "
                 "generate)?\n";
  }
  if (absl::IsUnimplemented(status) && status.message().empty()) {
    std::cerr << "hint: the process at this address has no such service; is "
                 "it the address of another listener?\n";
  }
}

bool IsUnreachable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

int ExitCodeOf(size_t asked, size_t failed, size_t unreachable) {
  if (failed == 0) return kExitOk;
  if (failed < asked) return kExitPartial;
  return unreachable == failed ? kExitUnhealthy : kExitError;
}

int ForEachPeer(const CliOptions& options,
                const std::vector<std::string>& addresses,
                const std::function<
                    grpc::Status(AdminStub& stub, grpc::ClientContext* context,
                                 const std::string& address)>& call) {
  size_t failed = 0, unreachable = 0;
  for (const std::string& address : addresses) {
    absl::Status status;
    auto channel = Dial(options, address);
    if (channel.ok()) {
      const auto stub = farkv::admin::v1::AdminService::NewStub(*channel);
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           absl::ToChronoMilliseconds(options.timeout));
      status = FromGrpcStatus(call(*stub, &context, address));
    } else {
      status = channel.status();
    }
    if (status.ok()) continue;
    ++failed;
    if (IsUnreachable(status)) ++unreachable;
    PrintError(address, status);
  }
  return ExitCodeOf(addresses.size(), failed, unreachable);
}

}  // namespace farkv
