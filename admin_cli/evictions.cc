#include "admin_cli/evictions.h"

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "admin_cli/commands.h"
#include "admin_cli/peers.h"
#include "common/rpc/duration_codec.h"

namespace farkv {
namespace {

using admin::v1::ListEvictionsRequest;
using admin::v1::ListEvictionsResponse;
using admin::v1::ReplayEvictionRequest;
using admin::v1::ReplayEvictionResponse;

using Decision = ListEvictionsResponse::Decision;

// Every page of one process's log, all within the first context's deadline.
grpc::Status ListAll(AdminStub& stub, grpc::ClientContext* first,
                     const std::string& session_bytes,
                     const std::function<void(const Decision&)>& take) {
  ListEvictionsRequest request;
  request.set_session_id(session_bytes);
  grpc::ClientContext* context = first;
  std::unique_ptr<grpc::ClientContext> next;
  do {
    ListEvictionsResponse response;
    const auto status = stub.ListEvictions(context, request, &response);
    if (!status.ok()) return status;
    for (const Decision& decision : response.decisions()) take(decision);
    request.set_page_token(response.next_page_token());
    next = std::make_unique<grpc::ClientContext>();
    next->set_deadline(first->deadline());
    context = next.get();
  } while (!request.page_token().empty());
  return grpc::Status::OK;
}

// Computes again what one node has logged; within the options' timeout each.
class Replayer {
 public:
  explicit Replayer(const CliOptions& options) : options_(options) {}

  grpc::Status ReplayAll(AdminStub& stub, const std::string& address,
                         const std::vector<Decision>& decisions,
                         Output& output) {
    for (const Decision& decision : decisions) {
      ReplayEvictionResponse response;
      grpc::Status status = Replay(stub, decision, response);
      // A page moved meanwhile.
      if (status.error_code() == grpc::StatusCode::ABORTED) {
        status = Replay(stub, decision, response);
      }
      // Inputs, the log's entry or rows are no longer there, or do not rest.
      const bool gone =
          status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
          status.error_code() == grpc::StatusCode::NOT_FOUND ||
          status.error_code() == grpc::StatusCode::ABORTED;
      if (!status.ok() && !gone) return status;
      AddReplay(decision, address, gone ? nullptr : &response,
                status.error_message(), output);
      differs_ |= !gone && !response.same();
    }
    return grpc::Status::OK;
  }

  bool differs() const { return differs_; }

 private:
  grpc::Status Replay(AdminStub& stub, const Decision& decision,
                      ReplayEvictionResponse& response) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(options_.timeout));
    ReplayEvictionRequest request;
    request.set_decision_id(decision.decision_id());
    return stub.ReplayEviction(&context, request, &response);
  }

  const CliOptions& options_;
  bool differs_ = false;
};

}  // namespace

Output EvictionOutput() {
  return Output("EvictionList", {{"DECISION", "id"},
                                 {"PROCESS", "node"},
                                 {"SESSION", "session"},
                                 {"EVENT", "event"},
                                 {"POLICY", "policy"},
                                 {"ANSWER", "answer"},
                                 {"HEADS", "heads"},
                                 {"CANDIDATES", "candidates"},
                                 {"KEPT", "kept"},
                                 {"DESTROYED", "destroyedRows"},
                                 {"BY-NODES", "layersByNodes"},
                                 {"BUDGET", "budgetTokens"},
                                 {"TOKENS", "numTokens"},
                                 {"NON-FINITE", "nonFinite"},
                                 {"REQUEST", "request"},
                                 {"SEED", "seed"},
                                 {"DIGEST", "digest"},
                                 {"REPLAY", "canBeReplayed"},
                                 {"AGE", "age"}});
}

void AddDecision(const ListEvictionsResponse::Decision& decision,
                 const std::string& node, Output& output) {
  output.AddRow({decision.decision_id(), node,
                 ShownSession(decision.session_id()), decision.event(),
                 decision.policy(),
                 decision.has_destroyed_rows() ? "destroyed"
                 : decision.final_list()       ? "decided"
                                               : "ranked",
                 decision.heads(), decision.candidates(), decision.kept(),
                 decision.destroyed_rows(), decision.layers_by_nodes(),
                 decision.budget_tokens(), decision.num_tokens(),
                 decision.non_finite(), decision.request(), decision.seed(),
                 absl::StrCat(absl::Hex(decision.digest(), absl::kZeroPad8)),
                 decision.can_be_replayed(),
                 absl::FormatDuration(absl::Trunc(FromProto(decision.age()),
                                                  absl::Milliseconds(100)))});
}

int GetEvictions(const CliOptions& options, const std::string& session) {
  Output output = EvictionOutput();
  const std::string session_bytes = absl::HexStringToBytes(session);
  const int code =
      ForEachPeer(options, Everyone(options),
                  [&](AdminStub& stub, grpc::ClientContext* context,
                      const std::string& address) {
                    return ListAll(stub, context, session_bytes,
                                   [&](const Decision& decision) {
                                     AddDecision(decision, address, output);
                                   });
                  });
  output.Print(options.output, std::cout);
  return code;
}

Output ReplayOutput() {
  return Output("ReplayList", {{"DECISION", "id"},
                               {"NODE", "node"},
                               {"SESSION", "session"},
                               {"EVENT", "event"},
                               {"POLICY", "policy"},
                               {"DIGEST", "digest"},
                               {"AGAIN", "digestAgain"},
                               {"RESULT", "result"},
                               {"WHY", "why"}});
}

void AddReplay(const Decision& decision, const std::string& node,
               const ReplayEvictionResponse* replay, const std::string& why,
               Output& output) {
  const auto hex = [](uint32_t digest) {
    return absl::StrCat(absl::Hex(digest, absl::kZeroPad8));
  };
  output.AddRow({decision.decision_id(), node,
                 ShownSession(decision.session_id()), decision.event(),
                 decision.policy(), hex(decision.digest()),
                 replay == nullptr ? "" : hex(replay->digest()),
                 replay == nullptr ? "gone"
                 : replay->same()  ? "same"
                                   : "differs",
                 why});
}

int ReplayEvictions(const CliOptions& options, const std::string& session) {
  Output output = ReplayOutput();
  Replayer replayer(options);
  const std::string session_bytes = absl::HexStringToBytes(session);
  const int code = ForEachPeer(
      options, options.nodes,
      [&](AdminStub& stub, grpc::ClientContext* context,
          const std::string& address) {
        std::vector<Decision> decisions;
        const auto listed = ListAll(
            stub, context, session_bytes,
            [&](const Decision& decision) { decisions.push_back(decision); });
        if (!listed.ok()) return listed;
        return replayer.ReplayAll(stub, address, decisions, output);
      });
  output.Print(options.output, std::cout);
  return code == kExitOk && replayer.differs() ? kExitError : code;
}

}  // namespace farkv
