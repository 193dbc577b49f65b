#include "memory_node/service/memory_service.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/eviction_codec.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/stream_writer.h"
#include "common/rpc/unary_answer.h"
#include "memory_node/service/watch_codec.h"

namespace farkv {
namespace {

using memory::v1::WatchNodeResponse;

absl::StatusOr<std::vector<SessionId>> ReadSessions(
    const memory::v1::RenewLeasesRequest& request) {
  if (request.session_ids_size() > kMaxRenewals) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.session_ids_size(), " session ids, at most ",
                     kMaxRenewals, " in one call"));
  }
  std::vector<SessionId> sessions;
  for (const std::string& raw : request.session_ids()) {
    FARKV_ASSIGN_OR_RETURN(SessionId session, SessionId::FromBytes(raw));
    sessions.push_back(session);
  }
  return sessions;
}

// What is wrong with a call's own numbers is found below common/rpc, which has
// the reasons.
absl::Status WithFieldReason(const absl::Status& status) {
  const bool has_none = ReasonOf(status) == ErrorReason::kUnspecified;
  return absl::IsInvalidArgument(status) && has_none
             ? WithReason(status, ErrorReason::kInvalidField)
             : status;
}

}  // namespace

MemoryService::MemoryService(Parts parts, NodeAddresses addresses)
    : parts_(std::move(parts)), addresses_(std::move(addresses)) {}

MemoryService::~MemoryService() = default;

grpc::ServerUnaryReactor* MemoryService::OpenSession(
    grpc::CallbackServerContext* context,
    const memory::v1::OpenSessionRequest* request,
    memory::v1::OpenSessionResponse* response) {
  const auto open = [&]() -> absl::Status {
    if (parts_.check_serving) FARKV_RETURN_IF_ERROR(parts_.check_serving());
    // Nobody would renew or close it.
    if (context->IsCancelled()) {
      return absl::CancelledError("the caller has gone: nothing was opened");
    }
    FARKV_ASSIGN_OR_RETURN(const OpenSessionCall call, FromProto(*request));
    FARKV_ASSIGN_OR_RETURN(SessionGrant grant, parts_.directory->Open(call));
    grant.node_id = addresses_.node_id;
    grant.data_host = addresses_.data_host;
    grant.data_port = addresses_.data_port;
    grant.map_socket = addresses_.map_socket;
    *response = ToProto(grant);
    return absl::OkStatus();
  };
  const absl::Status status = open();
  if (status.ok()) {
    parts_.on_session_change();
    parts_.events->Refresh();
  }
  return AnswerUnary(context, status);
}

grpc::ServerUnaryReactor* MemoryService::RenewLeases(
    grpc::CallbackServerContext* context,
    const memory::v1::RenewLeasesRequest* request,
    memory::v1::RenewLeasesResponse* response) {
  const auto renew = [&]() -> absl::Status {
    FARKV_ASSIGN_OR_RETURN(const std::vector<SessionId> sessions,
                           ReadSessions(*request));
    FARKV_ASSIGN_OR_RETURN(
        const RenewResult result,
        parts_.directory->Renew(Epoch{request->epoch()}, sessions,
                                FromProto(request->lease())));
    *response = ToProto(result);
    return absl::OkStatus();
  };
  const absl::Status status = renew();
  if (status.ok()) parts_.on_session_change();
  return AnswerUnary(context, status);
}

grpc::ServerUnaryReactor* MemoryService::ApplyTierPlan(
    grpc::CallbackServerContext* context,
    const memory::v1::ApplyTierPlanRequest* request,
    memory::v1::ApplyTierPlanResponse* response) {
  const bool compresses = request->tier_changes_size() > 0;
  const absl::Status entered =
      plans_.TryEnter(request->session_id(), compresses);
  if (!entered.ok()) return AnswerUnary(context, entered);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Executor* executor = compresses ? parts_.compress_executor : parts_.executor;
  executor->Execute([this, context, request, response, reactor, compresses] {
    const auto apply = [&]() -> absl::Status {
      if (context->IsCancelled()) {
        return absl::CancelledError("the caller has gone: nothing was done");
      }
      FARKV_ASSIGN_OR_RETURN(const TierPlanCall call, FromProto(*request));
      FARKV_ASSIGN_OR_RETURN(const TierPlanResult result,
                             parts_.directory->Apply(call));
      // A page that moved leaves a quarantine that ends.
      if (!result.moved.empty()) parts_.on_session_change();
      *response = ToProto(result);
      return absl::OkStatus();
    };
    const absl::Status status = apply();
    parts_.events->Refresh();
    plans_.Leave(request->session_id(), compresses);
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

grpc::ServerUnaryReactor* MemoryService::DecideEvictions(
    grpc::CallbackServerContext* context,
    const memory::v1::DecideEvictionsRequest* request,
    memory::v1::DecideEvictionsResponse* response) {
  if (decisions_.fetch_add(1) >= kMaxDecisions) {
    --decisions_;
    return AnswerUnary(context, TooManyCalls(kMaxDecisions, "decisions"));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  parts_.decide_executor->Execute([this, context, request, response, reactor] {
    const auto decide = [&]() -> absl::Status {
      if (context->IsCancelled()) {
        return absl::CancelledError("the caller has gone: nothing was decided");
      }
      FARKV_ASSIGN_OR_RETURN(EvictionCall call, FromProto(*request));
      FARKV_ASSIGN_OR_RETURN(const EvictionReply reply,
                             parts_.decide(std::move(call)));
      *response = ToProto(reply);
      return absl::OkStatus();
    };
    const absl::Status status = WithFieldReason(decide());
    --decisions_;
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

grpc::ServerUnaryReactor* MemoryService::CloseSession(
    grpc::CallbackServerContext* context,
    const memory::v1::CloseSessionRequest* request,
    memory::v1::CloseSessionResponse* response) {
  const auto close = [&]() -> absl::Status {
    // It may have opened the session again since.
    if (context->IsCancelled()) {
      return absl::CancelledError("the caller has gone: nothing was closed");
    }
    FARKV_ASSIGN_OR_RETURN(const SessionId session,
                           SessionId::FromBytes(request->session_id()));
    FARKV_ASSIGN_OR_RETURN(
        const uint64_t freed,
        parts_.directory->Close(session, Epoch{request->epoch()}));
    response->set_freed_pages(freed);
    return absl::OkStatus();
  };
  const absl::Status status = close();
  if (status.ok()) parts_.on_session_change();
  parts_.events->Refresh();
  return AnswerUnary(context, status);
}

grpc::ServerWriteReactor<WatchNodeResponse>* MemoryService::WatchNode(
    grpc::CallbackServerContext*, const memory::v1::WatchNodeRequest* request) {
  const auto id = std::make_shared<std::atomic<uint64_t>>(0);
  auto [writer, reactor] = StreamWriter<WatchNodeResponse>::Open(
      [events = parts_.events, id] { events->Unsubscribe(*id); });
  const Epoch epoch = parts_.directory->epoch();
  *id = parts_.events->Subscribe(
      [writer = writer, epoch, pool = parts_.pool, tenant = request->tenant()](
          const NodeState& state, const std::vector<RevokedSession>& revoked) {
        writer->Push(ToProto(state, revoked, tenant, epoch, pool->stats()));
      });  // tells the state as it is first
  return reactor;
}

}  // namespace farkv
