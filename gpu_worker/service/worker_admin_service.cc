#include "gpu_worker/service/worker_admin_service.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/session_handle.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/process/version.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/stream_writer.h"
#include "common/rpc/unary_answer.h"
#include "gpu_worker/service/decision_log_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the service's own messages

grpc::ServerUnaryReactor* NotOfWorkers(grpc::CallbackServerContext* context,
                                       const char* what) {
  return AnswerUnary(context,
                     absl::FailedPreconditionError(absl::StrCat(
                         "a worker has no ", what, "; ask a memory node")));
}

// A waiting request has none yet.
bool HasSession(const SequenceInfo& info) {
  return info.session != SessionId();
}

void Fill(const SequenceInfo& info, Sequence& proto) {
  proto.set_request_id(info.request_id);
  if (HasSession(info)) {
    proto.set_session_id(SessionHandleBytes(info.session));
  }
  proto.set_state(info.state);
  proto.set_prompt_tokens(info.prompt_tokens);
  proto.set_generated_tokens(info.generated_tokens);
  proto.set_t0_tokens(info.tiers.t0_tokens);
  proto.set_t1_tokens(info.tiers.t1_tokens);
  proto.set_t2_tokens(info.tiers.t2_tokens);
  proto.set_t3_tokens(info.tiers.t3_tokens);
  proto.set_t0_bytes(static_cast<uint64_t>(info.tiers.t0_peak_bytes));
  proto.set_cold_rows_read(info.tiers.cold_rows_mapped +
                           info.tiers.cold_rows_fetched +
                           info.tiers.cold_rows_pushed_down);
  *proto.mutable_age() = ToProto(info.age);
  proto.set_cold_mode(info.tiers.cold_mode);
  proto.set_lossy_tokens(info.tiers.lossy_tokens);
  proto.set_undone_promotions(info.tiers.undone_promotions);
}

// The one whose request id is `name`, else whose session `name` shows.
absl::StatusOr<SequenceInfo> FindSequence(
    const std::vector<SequenceInfo>& sequences, const std::string& name) {
  const auto pattern = SessionPattern::FromHex(name);
  const SequenceInfo* found = nullptr;
  for (const SequenceInfo& info : sequences) {
    if (info.request_id == name) return info;
    if (!pattern.ok() || !HasSession(info) || !pattern->Matches(info.session)) {
      continue;
    }
    if (found != nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("sessions of the requests \"", found->request_id,
                       "\" and \"", info.request_id, "\" are both shown as ",
                       SessionHandle(info.session), "; give a request id"));
    }
    found = &info;
  }
  if (found != nullptr) return *found;
  return absl::NotFoundError(absl::StrCat("no sequence has request id \"",
                                          absl::Utf8SafeCHexEscape(name),
                                          "\" or a session shown so"));
}

// The part of a tier map that fits one answer.
std::span<const PageTierMap> PagesAskedFor(const std::vector<PageTierMap>& map,
                                           const GetTierMapRequest& request) {
  constexpr int32_t kMaxPages = 4096;
  const auto total = static_cast<int32_t>(map.size());
  const int32_t first = std::clamp(request.first_page(), 0, total);
  const int32_t wanted = request.max_pages() > 0
                             ? std::min(request.max_pages(), kMaxPages)
                             : kMaxPages;
  return std::span<const PageTierMap>(map).subspan(
      static_cast<size_t>(first),
      static_cast<size_t>(std::min(wanted, total - first)));
}

absl::Status FillTierMap(const EngineView& engine,
                         const GetTierMapRequest& request,
                         GetTierMapResponse& response) {
  FARKV_ASSIGN_OR_RETURN(const SequenceInfo info,
                         FindSequence(engine.Sequences(), request.sequence()));
  FARKV_ASSIGN_OR_RETURN(const std::vector<PageTierMap> map,
                         engine.TierMap(info.request_id));
  Fill(info, *response.mutable_sequence());
  response.set_total_pages(static_cast<int32_t>(map.size()));
  for (const PageTierMap& page : PagesAskedFor(map, request)) {
    auto* proto = response.add_pages();
    proto->set_page_index(page.page_index);
    std::string tiers;
    for (Tier tier : page.tiers) {
      tiers += static_cast<char>('0' + static_cast<int>(tier));
    }
    proto->set_tiers(tiers);
    proto->set_stored(page.stored);
    proto->set_node_id(page.node_id);
  }
  return absl::OkStatus();
}

// Ends a call when the engine's thread has answered `question`. What it
// refers to stays until then.
grpc::ServerUnaryReactor* AnswerBy(
    const Engine& engine, grpc::CallbackServerContext* context,
    std::function<absl::Status(const EngineView&)> question) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::Status asked = engine.Ask(
      [reactor, question = std::move(question)](const EngineView& view) {
        reactor->Finish(ToGrpcStatus(question(view)));
      });
  if (!asked.ok()) reactor->Finish(ToGrpcStatus(asked));
  return reactor;
}

// One caller's watch over the requests that are left.
struct DrainWatch {
  absl::Mutex mutex;
  bool stream_done ABSL_GUARDED_BY(mutex) = false;
  uint64_t id ABSL_GUARDED_BY(mutex) = 0;  // 0: not yet, or refused
};

}  // namespace

WorkerAdminService::WorkerAdminService(Engine& engine, Identity identity)
    : engine_(engine),
      identity_(std::move(identity)),
      start_(Clock::Boottime().Now()),
      epoch_(static_cast<uint64_t>(absl::ToUnixMicros(absl::Now()))) {}

WorkerAdminService::~WorkerAdminService() = default;

grpc::ServerUnaryReactor* WorkerAdminService::GetProcess(
    grpc::CallbackServerContext* context, const GetProcessRequest* request,
    GetProcessResponse* response) {
  const EngineLoad load = engine_.Load();
  response->set_kind(PROCESS_KIND_WORKER);
  response->set_id(identity_.worker_id);
  response->set_epoch(epoch_);
  Handshake handshake;
  handshake.page_format_version = kPageFormatVersion;
  handshake.kernel_target = KernelTarget();
  handshake.software_version = SoftwareVersion();
  *response->mutable_handshake() = ToProto(handshake);
  *response->mutable_uptime() = ToProto(Clock::Boottime().Now() - start_);
  response->set_draining(load.draining);
  response->set_sessions(load.running);
  for (const auto& [name, value] : identity_.config) {
    (*response->mutable_config())[name] = value;
  }
  if (request->with_metrics()) {
    for (const auto& [name, value] : identity_.metrics()) {
      (*response->mutable_metrics())[name] = value;
    }
  }
  return AnswerUnary(context);
}

grpc::ServerUnaryReactor* WorkerAdminService::ListPools(
    grpc::CallbackServerContext* context, const ListPoolsRequest*,
    ListPoolsResponse* response) {
  const EngineLoad load = engine_.Load();
  Pool* pool = response->add_pools();
  pool->set_tier(types::v1::TIER_T0);
  pool->set_owner_id(identity_.worker_id);
  pool->set_capacity_bytes(load.t0.capacity_bytes);
  pool->set_used_bytes(load.t0.used_bytes);
  if (load.t0.line_bytes > 0) {
    pool->set_capacity_pages(load.t0.capacity_bytes / load.t0.line_bytes);
    pool->set_used_pages(load.t0.used_bytes / load.t0.line_bytes);
  }
  return AnswerUnary(context);
}

grpc::ServerUnaryReactor* WorkerAdminService::ListSequences(
    grpc::CallbackServerContext* context, const ListSequencesRequest*,
    ListSequencesResponse* response) {
  return AnswerBy(engine_, context, [response](const EngineView& engine) {
    for (const SequenceInfo& info : engine.Sequences()) {
      Fill(info, *response->add_sequences());
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* WorkerAdminService::GetTierMap(
    grpc::CallbackServerContext* context, const GetTierMapRequest* request,
    GetTierMapResponse* response) {
  return AnswerBy(engine_, context,
                  [request, response](const EngineView& engine) {
                    return FillTierMap(engine, *request, *response);
                  });
}

grpc::ServerUnaryReactor* WorkerAdminService::ListPeers(
    grpc::CallbackServerContext* context, const ListPeersRequest*,
    ListPeersResponse* response) {
  for (const PeerStats& stats : engine_.Peers()) {
    Peer* peer = response->add_peers();
    peer->set_id(stats.id);
    peer->set_address(stats.address);
    peer->set_transport(stats.transport);
    peer->set_healthy(stats.healthy);
    peer->set_epoch(stats.epoch.value);
    peer->set_bytes_sent(stats.bytes_sent);
    peer->set_bytes_received(stats.bytes_received);
    *peer->mutable_last_heartbeat() = ToProto(stats.last_heartbeat);
    peer->set_link_bytes_per_second(stats.link_bytes_per_second);
    if (stats.round_trip > absl::ZeroDuration()) {
      *peer->mutable_round_trip() = ToProto(stats.round_trip);
    }
    peer->set_attend_rows_per_second(stats.attend_rows_per_second);
    peer->set_cold_mode(stats.cold_mode);
    peer->set_cold_reason(stats.cold_reason);
  }
  return AnswerUnary(context);
}

grpc::ServerUnaryReactor* WorkerAdminService::ListSessions(
    grpc::CallbackServerContext* context, const ListSessionsRequest*,
    ListSessionsResponse*) {
  return NotOfWorkers(context, "sessions");
}

grpc::ServerUnaryReactor* WorkerAdminService::ListPages(
    grpc::CallbackServerContext* context, const ListPagesRequest*,
    ListPagesResponse*) {
  return NotOfWorkers(context, "pages of a pool");
}

grpc::ServerUnaryReactor* WorkerAdminService::ListEvictions(
    grpc::CallbackServerContext* context, const ListEvictionsRequest* request,
    ListEvictionsResponse* response) {
  const auto list = [request, response](const EngineView& engine) {
    const auto answer = ListDecisions(
        *request,
        [&](const DecisionQuery& query) { return engine.Decisions(query); },
        Clock::Boottime().Now());
    if (answer.ok()) *response = *answer;
    return answer.status();
  };
  return AnswerBy(engine_, context, list);
}

grpc::ServerUnaryReactor* WorkerAdminService::ReplayEviction(
    grpc::CallbackServerContext* context, const ReplayEvictionRequest*,
    ReplayEvictionResponse*) {
  return NotOfWorkers(context, "inputs of decisions to replay");
}

grpc::ServerUnaryReactor* WorkerAdminService::Verify(
    grpc::CallbackServerContext* context, const VerifyRequest*,
    VerifyResponse*) {
  return NotOfWorkers(context, "stored pages to verify");
}

grpc::ServerWriteReactor<DrainResponse>* WorkerAdminService::Drain(
    grpc::CallbackServerContext*, const DrainRequest* request) {
  const auto watch = std::make_shared<DrainWatch>();
  auto [writer, reactor] = StreamWriter<DrainResponse>::Open([this, watch] {
    absl::MutexLock lock(&watch->mutex);
    watch->stream_done = true;
    if (watch->id != 0) engine_.Unwatch(watch->id);
  });
  engine_.SetDraining(request->drain());
  const auto id = engine_.WatchLeft([writer = writer](RequestQueue::Left left) {
    const bool done = !left.draining || left.requests == 0;
    DrainResponse response;
    response.set_sessions_left(left.requests);
    response.set_done(done);
    writer->Push(response);
    if (done) writer->Finish(grpc::Status::OK);
  });
  if (!id.ok()) {
    writer->Finish(ToGrpcStatus(id.status()));
    return reactor;
  }
  absl::MutexLock lock(&watch->mutex);
  watch->id = *id;
  if (watch->stream_done) engine_.Unwatch(*id);
  return reactor;
}

}  // namespace farkv
