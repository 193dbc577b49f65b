#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "admin_cli/commands.h"
#include "admin_cli/output.h"
#include "admin_cli/peers.h"
#include "admin_cli/tables.h"
#include "common/process/version.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

// FAILED_PRECONDITION when the process is of the other kind.
grpc::Status MustBe(ProcessKind kind, const GetProcessResponse& process) {
  if (process.kind() == kind) return grpc::Status::OK;
  const std::string why =
      kind == PROCESS_KIND_MEMORY_NODE
          ? absl::StrCat("this is worker ", process.id(),
                         ", not a memory node; for workers: get sequences or "
                         "get pools, with --workers")
          : absl::StrCat("this is memory node ", process.id(),
                         ", not a worker; for nodes: get nodes or get pools, "
                         "with --nodes");
  return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, why);
}

using AddProcess = void (*)(const GetProcessResponse& process,
                            const std::string& address, Output& output);

// One row, or several, for each process; of any kind when `kind` is none.
int GetProcesses(const CliOptions& options,
                 const std::vector<std::string>& addresses, ProcessKind kind,
                 Output output, AddProcess add) {
  const int code =
      ForEachPeer(options, addresses,
                  [&](AdminStub& stub, grpc::ClientContext* context,
                      const std::string& address) {
                    GetProcessResponse response;
                    auto status = stub.GetProcess(context, {}, &response);
                    if (status.ok() && kind != PROCESS_KIND_UNSPECIFIED) {
                      status = MustBe(kind, response);
                    }
                    if (status.ok()) add(response, address, output);
                    return status;
                  });
  output.Print(options.output, std::cout);
  return code;
}

// A row for each session of each node.
int ListSessions(const CliOptions& options, Output output,
                 void (*add)(const Session& session, const std::string& address,
                             Output& output)) {
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
            add(session, address, output);
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

}  // namespace

int GetNodes(const CliOptions& options) {
  return GetProcesses(options, options.nodes, PROCESS_KIND_MEMORY_NODE,
                      NodeOutput(), AddNode);
}

int GetWorkers(const CliOptions& options) {
  return GetProcesses(options, options.workers, PROCESS_KIND_WORKER,
                      WorkerOutput(), AddWorker);
}

int ViewConfig(const CliOptions& options) {
  return GetProcesses(options, Everyone(options), PROCESS_KIND_UNSPECIFIED,
                      ConfigOutput(), AddConfig);
}

int GetPools(const CliOptions& options) {
  Output output = PoolOutput();
  const int code = ForEachPeer(
      options, Everyone(options),
      [&](AdminStub& stub, grpc::ClientContext* context, const std::string&) {
        ListPoolsResponse response;
        const auto status = stub.ListPools(context, {}, &response);
        for (const Pool& pool : response.pools()) AddPool(pool, output);
        return status;
      });
  output.Print(options.output, std::cout);
  return code;
}

int GetPeers(const CliOptions& options) {
  Output output = PeerOutput();
  const int code =
      ForEachPeer(options, Everyone(options),
                  [&](AdminStub& stub, grpc::ClientContext* context,
                      const std::string& address) {
                    ListPeersResponse response;
                    const auto status = stub.ListPeers(context, {}, &response);
                    for (const Peer& peer : response.peers()) {
                      AddPeer(peer, address, output);
                    }
                    return status;
                  });
  output.Print(options.output, std::cout);
  return code;
}

int GetSessions(const CliOptions& options) {
  return ListSessions(options, SessionOutput(), AddSession);
}

int GetLeases(const CliOptions& options) {
  CliOptions by_end = options;
  if (by_end.output.sort_by.empty()) by_end.output.sort_by = "remaining";
  return ListSessions(by_end, LeaseOutput(), AddLease);
}

int GetSequences(const CliOptions& options) {
  Output output = SequenceOutput();
  const int code = ForEachPeer(
      options, options.workers,
      [&](AdminStub& stub, grpc::ClientContext* context, const std::string&) {
        ListSequencesResponse response;
        const auto status = stub.ListSequences(context, {}, &response);
        for (const Sequence& sequence : response.sequences()) {
          AddSequence(sequence, output);
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
