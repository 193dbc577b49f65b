#include "common/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_log.h"

namespace farkv {
namespace {

// Requests carry page names and token ids, never rows.
constexpr int kMaxRequestBytes = 16 << 20;

void InstallPlugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    RouteGrpcLog();
  });
}

// gRPC says why only in its log.
absl::Status CannotListen(const std::string& address, const std::string& log) {
  const auto says = [&log](const char* cause) {
    return log.find(cause) != std::string::npos;
  };
  const std::string what = absl::StrCat("cannot listen on ", address, ": ");
  if (says("Address already in use")) {
    return absl::AlreadyExistsError(
        absl::StrCat(what, "another process listens on that port"));
  }
  if (says("Cannot assign requested address")) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "this machine does not have that address"));
  }
  if (says("Permission denied")) {
    return absl::PermissionDeniedError(
        absl::StrCat(what, "this user may not listen on that port"));
  }
  if (says("not known") || says("not found")) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "no address is known for that host"));
  }
  return absl::UnavailableError(absl::StrCat(
      what,
      log.empty() ? "gRPC does not say why (are the TLS files good?)" : log));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& address, const TlsOptions& tls,
    const std::vector<grpc::Service*>& services) {
  InstallPlugins();
  FARKV_ASSIGN_OR_RETURN(auto credentials, MakeServerCredentials(tls));
  grpc::ServerBuilder builder;
  // Two processes on one port would share its connections at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  int port = 0;
  builder.AddListeningPort(address, credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  auto result = std::unique_ptr<RpcServer>(new RpcServer());
  const GrpcLogCapture log;
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr || port == 0) {
    return CannotListen(address, log.text());
  }
  result->port_ = static_cast<uint16_t>(port);
  result->SetServing(false);
  return result;
}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

void RpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() +
                    absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace farkv
