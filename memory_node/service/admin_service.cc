#include "memory_node/service/admin_service.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/stream_writer.h"
#include "common/rpc/unary_answer.h"
#include "memory_node/service/admin_codec.h"
#include "memory_node/service/eviction_log_codec.h"
#include "memory_node/service/page_list_codec.h"

namespace farkv {
namespace {

using admin::v1::DrainResponse;

constexpr int32_t kDefaultPageSize = 1000;

grpc::ServerUnaryReactor* NotOfANode(grpc::CallbackServerContext* context,
                                     const char* call) {
  return AnswerUnary(context, absl::FailedPreconditionError(absl::StrCat(
                                  call,
                                  ": this process is a memory node; ask the "
                                  "worker")));
}

}  // namespace

AdminService::AdminService(Parts parts, NodeIdentity identity)
    : parts_(parts),
      identity_(std::move(identity)),
      started_(parts_.clock->Now()) {}

AdminService::~AdminService() = default;

grpc::ServerUnaryReactor* AdminService::GetProcess(
    grpc::CallbackServerContext* context,
    const admin::v1::GetProcessRequest* request,
    admin::v1::GetProcessResponse* response) {
  const NodeState state = parts_.events->state();
  response->set_kind(admin::v1::PROCESS_KIND_MEMORY_NODE);
  response->set_id(identity_.node_id);
  response->set_epoch(parts_.directory->epoch().value);
  *response->mutable_handshake() = ToProto(parts_.directory->handshake());
  *response->mutable_uptime() = ToProto(parts_.clock->Now() - started_);
  response->set_draining(state.draining);
  response->set_pressure(state.pressure);
  response->set_sessions(static_cast<int32_t>(state.sessions));
  for (const auto& [name, value] : identity_.config) {
    (*response->mutable_config())[name] = value;
  }
  if (request->with_metrics()) {
    for (const auto& [name, value] : parts_.metrics()) {
      (*response->mutable_metrics())[name] = value;
    }
  }
  return AnswerUnary(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::ListPools(
    grpc::CallbackServerContext* context, const admin::v1::ListPoolsRequest*,
    admin::v1::ListPoolsResponse* response) {
  *response->add_pools() =
      PoolToProto(Tier::kT1, parts_.pool->stats(), parts_.directory->stats(),
                  identity_.node_id, identity_.numa_node);
  if (parts_.t2_pool != nullptr) {
    *response->add_pools() = PoolToProto(
        Tier::kT2, parts_.t2_pool->stats(), parts_.directory->stats(),
        identity_.node_id, identity_.numa_node);
  }
  return AnswerUnary(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::ListSessions(
    grpc::CallbackServerContext* context,
    const admin::v1::ListSessionsRequest* request,
    admin::v1::ListSessionsResponse* response) {
  const int32_t size = request->page_size();
  if (size < 0 || size > kDefaultPageSize) {
    return AnswerUnary(context, absl::InvalidArgumentError(absl::StrCat(
                                    "page_size is ", size, ", must be in 0..",
                                    kDefaultPageSize)));
  }
  SessionId after;  // all zero: no session's id
  if (!request->page_token().empty()) {
    const auto token = SessionPattern::FromHex(request->page_token());
    if (!token.ok()) {
      return AnswerUnary(
          context, absl::InvalidArgumentError(
                       absl::StrCat("page_token: ", token.status().message())));
    }
    after = token->Last();
  }
  const auto count = static_cast<size_t>(size == 0 ? kDefaultPageSize : size);
  const std::vector<SessionReport> sessions =
      parts_.directory->List(after, count);
  for (const SessionReport& session : sessions) {
    *response->add_sessions() = ToProto(session);
  }
  if (sessions.size() >= count) {
    response->set_next_page_token(SessionHandle(sessions.back().id));
  }
  return AnswerUnary(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AdminService::ListPages(
    grpc::CallbackServerContext* context,
    const admin::v1::ListPagesRequest* request,
    admin::v1::ListPagesResponse* response) {
  const auto list = [&]() -> absl::Status {
    FARKV_ASSIGN_OR_RETURN(PageQuery query, ReadQuery(*request));
    const size_t count = query.count++;
    *response = ToProto(parts_.directory->ListPages(query), count);
    return absl::OkStatus();
  };
  return AnswerUnary(context, list());
}

grpc::ServerUnaryReactor* AdminService::ListSequences(
    grpc::CallbackServerContext* context,
    const admin::v1::ListSequencesRequest*, admin::v1::ListSequencesResponse*) {
  return NotOfANode(context, "ListSequences");
}

grpc::ServerUnaryReactor* AdminService::GetTierMap(
    grpc::CallbackServerContext* context,
    const admin::v1::GetTierMapRequest* request,
    admin::v1::GetTierMapResponse* response) {
  const auto describe = [&]() -> absl::Status {
    FARKV_ASSIGN_OR_RETURN(const SessionPattern pattern,
                           SessionPattern::FromHex(request->sequence()));
    FARKV_ASSIGN_OR_RETURN(const SessionId id,
                           parts_.directory->Resolve(pattern));
    FARKV_ASSIGN_OR_RETURN(const SessionReport session,
                           parts_.directory->Describe(id));
    FARKV_ASSIGN_OR_RETURN(const std::vector<PageReport> pages,
                           parts_.directory->DescribePages(id));
    *response = TierMapToProto(session, pages, identity_.node_id);
    return absl::OkStatus();
  };
  return AnswerUnary(context, describe());
}

grpc::ServerUnaryReactor* AdminService::ListEvictions(
    grpc::CallbackServerContext* context,
    const admin::v1::ListEvictionsRequest* request,
    admin::v1::ListEvictionsResponse* response) {
  const auto list = [&]() -> absl::Status {
    const auto most = static_cast<int32_t>(parts_.evictions->max_decisions());
    FARKV_ASSIGN_OR_RETURN(const EvictionQuery query,
                           ReadQuery(*request, most));
    *response = ToProto(
        query,
        parts_.evictions->List(query.before, query.count + 1, query.sessions),
        parts_.clock->Now());
    return absl::OkStatus();
  };
  return AnswerUnary(context, list());
}

// A scrub of a whole pool takes minutes, and others wait behind it.
grpc::ServerUnaryReactor* AdminService::InTurn(
    grpc::CallbackServerContext* context,
    absl::AnyInvocable<absl::Status() &&> work) {
  if (waiting_.fetch_add(1) >= kMaxWaiting) {
    waiting_.fetch_sub(1);
    return AnswerUnary(context,
                       absl::ResourceExhaustedError(absl::StrCat(
                           kMaxWaiting,
                           " verifications and replays run or wait on this "
                           "node already; try again later")));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  parts_.executor->Execute(
      [this, context, reactor, work = std::move(work)]() mutable {
        const absl::Status status =
            context->IsCancelled() ? absl::CancelledError("the caller has gone")
                                   : std::move(work)();
        waiting_.fetch_sub(1);
        reactor->Finish(ToGrpcStatus(status));
      });
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::ReplayEviction(
    grpc::CallbackServerContext* context,
    const admin::v1::ReplayEvictionRequest* request,
    admin::v1::ReplayEvictionResponse* response) {
  return InTurn(context, [this, request, response]() -> absl::Status {
    FARKV_ASSIGN_OR_RETURN(const Replay replay,
                           parts_.replay(request->decision_id()));
    response->set_same(replay.same);
    response->set_digest(ReplyDigest(replay.reply));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListPeers(
    grpc::CallbackServerContext* context, const admin::v1::ListPeersRequest*,
    admin::v1::ListPeersResponse* response) {
  const absl::Time now = parts_.clock->Now();
  for (const PeerReport& peer : parts_.data->peers()) {
    admin::v1::Peer* proto = response->add_peers();
    proto->set_id(peer.worker_id);
    proto->set_transport(peer.mapped ? "map" : identity_.transport);
    proto->set_bytes_sent(peer.bytes_sent);
    proto->set_bytes_received(peer.bytes_received);
    proto->set_healthy(true);
    *proto->mutable_last_heartbeat() = ToProto(now - peer.last_message);
  }
  return AnswerUnary(context, absl::OkStatus());
}

grpc::ServerWriteReactor<DrainResponse>* AdminService::Drain(
    grpc::CallbackServerContext*, const admin::v1::DrainRequest* request) {
  const auto id = std::make_shared<std::atomic<uint64_t>>(0);
  auto [writer, reactor] = StreamWriter<DrainResponse>::Open(
      [events = parts_.events, id] { events->Unsubscribe(*id); });
  const auto report = [writer = writer](const NodeState& state) {
    const bool done = !state.draining || state.sessions == 0;
    DrainResponse response;
    response.set_sessions_left(static_cast<int32_t>(state.sessions));
    response.set_done(done);
    writer->Push(response);
    if (done) writer->Finish(grpc::Status::OK);
  };
  parts_.directory->SetDraining(request->drain());
  parts_.events->Refresh();
  *id = parts_.events->Subscribe(
      [report](const NodeState& state, const std::vector<RevokedSession>&) {
        report(state);
      });  // tells the state as it is first
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::Verify(
    grpc::CallbackServerContext* context,
    const admin::v1::VerifyRequest* request,
    admin::v1::VerifyResponse* response) {
  return InTurn(context, [this, context, request, response]() -> absl::Status {
    std::optional<SessionId> session;
    if (!request->session_id().empty()) {
      FARKV_ASSIGN_OR_RETURN(const SessionPattern pattern,
                             SessionPattern::FromBytes(request->session_id()));
      FARKV_ASSIGN_OR_RETURN(session, parts_.directory->Resolve(pattern));
    }
    const auto stop = [context] { return context->IsCancelled(); };
    FARKV_ASSIGN_OR_RETURN(const ScrubResult result,
                           parts_.scrubber->Run(session, stop));
    response->set_pages_checked(result.pages);
    response->set_rows_checked(result.rows);
    response->set_mismatches(result.mismatches);
    return absl::OkStatus();
  });
}

}  // namespace farkv
