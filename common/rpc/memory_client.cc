#include "common/rpc/memory_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/credentials.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/eviction_codec.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"
#include "farkv/memory/v1/memory_service.grpc.pb.h"

namespace farkv {
namespace {

using memory::v1::MemoryNodeService;

// A deadline that gRPC and its retries share.
void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMicroseconds(timeout));
}

bool WorthRetrying(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE;
}

}  // namespace

struct MemoryClient::Impl {
  std::string address;
  std::unique_ptr<MemoryNodeService::Stub> stub;

  absl::Status Named(const grpc::Status& status) const {
    absl::Status result = FromGrpcStatus(status);
    if (result.ok()) return result;
    std::string why(result.message());
    if (absl::IsUnimplemented(result)) {
      why =
          "answers without this service; is it the address of another of its "
          "listeners (workers want --listen)?";
    }
    absl::Status named(result.code(),
                       absl::StrCat("memory node ", address, ": ", why));
    result.ForEachPayload(
        [&named](absl::string_view url, const absl::Cord& payload) {
          named.SetPayload(url, payload);
        });
    return named;
  }

  // One retry after a broken connection: every call here may be repeated,
  // either idempotent by nature or by its sequence number.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (MemoryNodeService::Stub::*method)(
                                    grpc::ClientContext*, const Request&,
                                    Response*),
                                const Request& request,
                                absl::Duration timeout) {
    const absl::Time end = absl::Now() + timeout;
    grpc::Status status;
    for (int attempt = 0; attempt < 2; ++attempt) {
      grpc::ClientContext context;
      SetDeadline(context, end - absl::Now());
      Response response;
      status = (stub.get()->*method)(&context, request, &response);
      if (status.ok()) return response;
      if (!WorthRetrying(status)) break;
    }
    return Named(status);
  }
};

MemoryClient::MemoryClient(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
MemoryClient::~MemoryClient() = default;

absl::StatusOr<std::unique_ptr<MemoryClient>> MemoryClient::Create(
    const std::string& address, const TlsOptions& tls) {
  FARKV_ASSIGN_OR_RETURN(auto credentials, MakeChannelCredentials(tls));
  auto impl = std::make_unique<Impl>();
  impl->address = address;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A node that is replaced may come back at another address of its name; by
  // default gRPC asks for that no sooner than 30 s after it last did.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // Nodes are not interchangeable: no sharing of connections between clients.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  impl->stub = MemoryNodeService::NewStub(
      grpc::CreateCustomChannel(address, credentials, arguments));
  return std::unique_ptr<MemoryClient>(new MemoryClient(std::move(impl)));
}

const std::string& MemoryClient::address() const { return impl_->address; }

absl::StatusOr<SessionGrant> MemoryClient::OpenSession(
    const OpenSessionCall& call, absl::Duration timeout) {
  FARKV_ASSIGN_OR_RETURN(auto response,
                         impl_->Call(&MemoryNodeService::Stub::OpenSession,
                                     ToProto(call), timeout));
  return FromProto(response);
}

absl::StatusOr<RenewResult> MemoryClient::RenewLeases(
    Epoch epoch, std::span<const SessionId> sessions, absl::Duration lease,
    absl::Duration timeout) {
  memory::v1::RenewLeasesRequest request;
  request.set_epoch(epoch.value);
  *request.mutable_lease() = ToProto(lease);
  for (const SessionId& session : sessions) {
    request.add_session_ids(session.ToBytes());
  }
  FARKV_ASSIGN_OR_RETURN(
      auto response,
      impl_->Call(&MemoryNodeService::Stub::RenewLeases, request, timeout));
  return FromProto(response);
}

absl::StatusOr<TierPlanResult> MemoryClient::ApplyTierPlan(
    const TierPlanCall& call, absl::Duration timeout) {
  FARKV_ASSIGN_OR_RETURN(auto response,
                         impl_->Call(&MemoryNodeService::Stub::ApplyTierPlan,
                                     ToProto(call), timeout));
  return FromProto(response);
}

absl::StatusOr<EvictionReply> MemoryClient::DecideEvictions(
    const EvictionCall& call, absl::Duration timeout) {
  FARKV_ASSIGN_OR_RETURN(auto response,
                         impl_->Call(&MemoryNodeService::Stub::DecideEvictions,
                                     ToProto(call), timeout));
  return FromProto(response);
}

absl::StatusOr<uint64_t> MemoryClient::CloseSession(SessionId session,
                                                    Epoch epoch,
                                                    uint64_t sequence_number,
                                                    absl::Duration timeout) {
  memory::v1::CloseSessionRequest request;
  request.set_session_id(session.ToBytes());
  request.set_epoch(epoch.value);
  request.set_sequence_number(sequence_number);
  FARKV_ASSIGN_OR_RETURN(
      auto response,
      impl_->Call(&MemoryNodeService::Stub::CloseSession, request, timeout));
  return response.freed_pages();
}

}  // namespace farkv
