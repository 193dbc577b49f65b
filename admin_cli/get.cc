#include <iostream>

#include "absl/strings/str_cat.h"
#include "admin_cli/commands.h"
#include "admin_cli/output.h"
#include "admin_cli/peers.h"
#include "common/base/parse.h"
#include "common/process/version.h"
#include "common/rpc/duration_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

std::string Seconds(const google::protobuf::Duration& duration) {
  return absl::FormatDuration(
      absl::Trunc(FromProto(duration), absl::Milliseconds(100)));
}

std::string TierName(types::v1::Tier tier) {
  return absl::StrCat("T", static_cast<int>(tier) - 1);
}

std::vector<std::string> Everyone(const CliOptions& options) {
  std::vector<std::string> all = options.nodes;
  all.insert(all.end(), options.workers.begin(), options.workers.end());
  return all;
}

void AddPool(const Pool& pool, Output& output) {
  output.AddRow({pool.owner_id(), TierName(pool.tier()),
                 FormatBytes(pool.capacity_bytes()), pool.used_bytes(),
                 pool.used_pages(), pool.capacity_pages(),
                 pool.reserved_pages(), pool.quarantined_pages(),
                 pool.live_rows(), pool.slabs(), pool.huge_pages()});
}

void AddSession(const Session& session, const std::string& node,
                Output& output) {
  const auto& g = session.geometry();
  output.AddRow(
      {ShownSession(session.session_id()), node, session.tenant(),
       session.worker_id(),
       absl::StrCat(g.num_layers(), "x", g.num_kv_heads(), "x", g.head_dim()),
       session.pages(), session.stored_pages(), FormatBytes(session.bytes()),
       Seconds(session.lease_remaining()), Seconds(session.age())});
}

}  // namespace

int GetNodes(const CliOptions& options) {
  Output output("NodeList", {{"NODE", "id"},
                             {"ADDRESS", "address"},
                             {"STATE", "state"},
                             {"EPOCH", "epoch"},
                             {"SESSIONS", "sessions"},
                             {"UPTIME", "uptime"},
                             {"KERNELS", "kernelTarget"},
                             {"VERSION", "version"}});
  const int code = ForEachPeer(
      options, options.nodes,
      [&](AdminStub& stub, grpc::ClientContext* context,
          const std::string& address) {
        GetProcessResponse response;
        const auto status = stub.GetProcess(context, {}, &response);
        if (!status.ok()) return status;
        if (response.kind() == PROCESS_KIND_WORKER) {
          return grpc::Status(
              grpc::StatusCode::FAILED_PRECONDITION,
              absl::StrCat("this is worker ", response.id(),
                           ", not a memory node; for workers: get sequences "
                           "or get pools, with --workers"));
        }
        const char* state = response.draining()   ? "draining"
                            : response.pressure() ? "pressure"
                                                  : "ready";
        output.AddRow({response.id(), address, state, response.epoch(),
                       response.sessions(), Seconds(response.uptime()),
                       response.handshake().kernel_target(),
                       response.handshake().software_version()});
        return status;
      });
  output.Print(options.output, std::cout);
  return code;
}

int GetPools(const CliOptions& options) {
  Output output("PoolList", {{"OWNER", "owner"},
                             {"TIER", "tier"},
                             {"CAPACITY", "capacity"},
                             {"USED-BYTES", "usedBytes"},
                             {"PAGES", "usedPages"},
                             {"OF", "capacityPages"},
                             {"RESERVED", "reservedPages"},
                             {"QUARANTINED", "quarantinedPages"},
                             {"LIVE-ROWS", "liveRows"},
                             {"SLABS", "slabs"},
                             {"HUGE", "hugePages"}});
  const int code = ForEachPeer(
      options, Everyone(options),
      [&](AdminStub& stub, grpc::ClientContext* context, const std::string&) {
        ListPoolsResponse response;
        const auto status = stub.ListPools(context, {}, &response);
        for (const Pool& pool : response.pools()) {
          AddPool(pool, output);
        }
        return status;
      });
  output.Print(options.output, std::cout);
  return code;
}

int GetSessions(const CliOptions& options) {
  Output output("SessionList", {{"SESSION", "id"},
                                {"NODE", "node"},
                                {"TENANT", "tenant"},
                                {"WORKER", "worker"},
                                {"GEOMETRY", "geometry"},
                                {"PAGES", "pages"},
                                {"STORED", "storedPages"},
                                {"BYTES", "bytes"},
                                {"LEASE", "leaseRemaining"},
                                {"AGE", "age"}});
  const int code = ForEachPeer(
      options, options.nodes,
      [&](AdminStub& stub, grpc::ClientContext* first,
          const std::string& address) {
        std::string token;
        grpc::ClientContext* context = first;
        std::unique_ptr<grpc::ClientContext> next;
        do {
          ListSessionsRequest request;
          request.set_page_token(token);
          ListSessionsResponse response;
          const auto status = stub.ListSessions(context, request, &response);
          if (!status.ok()) return status;
          for (const Session& session : response.sessions()) {
            AddSession(session, address, output);
          }
          token = response.next_page_token();
          next = std::make_unique<grpc::ClientContext>();
          next->set_deadline(first->deadline());
          context = next.get();
        } while (!token.empty());
        return grpc::Status::OK;
      });
  output.Print(options.output, std::cout);
  return code;
}

int GetSequences(const CliOptions& options) {
  Output output("SequenceList", {{"REQUEST", "requestId"},
                                 {"SESSION", "sessionId"},
                                 {"STATE", "state"},
                                 {"PROMPT", "promptTokens"},
                                 {"GENERATED", "generatedTokens"},
                                 {"T0", "t0Tokens"},
                                 {"T1", "t1Tokens"},
                                 {"COLD-ROWS", "coldRowsRead"},
                                 {"COLD-MODE", "coldMode"},
                                 {"AGE", "age"}});
  const int code = ForEachPeer(
      options, options.workers,
      [&](AdminStub& stub, grpc::ClientContext* context, const std::string&) {
        ListSequencesResponse response;
        const auto status = stub.ListSequences(context, {}, &response);
        for (const Sequence& s : response.sequences()) {
          output.AddRow({s.request_id(), ShownSession(s.session_id()),
                         s.state(), s.prompt_tokens(), s.generated_tokens(),
                         s.t0_tokens(), s.t1_tokens(), s.cold_rows_read(),
                         s.cold_mode(), Seconds(s.age())});
        }
        return status;
      });
  output.Print(options.output, std::cout);
  return code;
}

int PrintVersion(const CliOptions& options) {
  Output output("Version", {{"PROGRAM", "program"}, {"VERSION", "version"}});
  output.AddRow({"farkvctl", SoftwareVersion()});
  output.Print(options.output, std::cout);
  return kExitOk;
}

}  // namespace farkv
