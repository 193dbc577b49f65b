#include "admin_cli/evictions.h"

#include <iostream>
#include <memory>

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

// Every page of one node's log, all within the first context's deadline.
grpc::Status ListAll(AdminStub& stub, grpc::ClientContext* first,
                     const std::string& session_bytes,
                     const std::string& address, Output& output) {
  ListEvictionsRequest request;
  request.set_session_id(session_bytes);
  grpc::ClientContext* context = first;
  std::unique_ptr<grpc::ClientContext> next;
  do {
    ListEvictionsResponse response;
    const auto status = stub.ListEvictions(context, request, &response);
    if (!status.ok()) return status;
    for (const auto& decision : response.decisions()) {
      AddDecision(decision, address, output);
    }
    request.set_page_token(response.next_page_token());
    next = std::make_unique<grpc::ClientContext>();
    next->set_deadline(first->deadline());
    context = next.get();
  } while (!request.page_token().empty());
  return grpc::Status::OK;
}

}  // namespace

Output EvictionOutput() {
  return Output("EvictionList", {{"DECISION", "id"},
                                 {"NODE", "node"},
                                 {"SESSION", "session"},
                                 {"EVENT", "event"},
                                 {"POLICY", "policy"},
                                 {"ANSWER", "answer"},
                                 {"HEADS", "heads"},
                                 {"CANDIDATES", "candidates"},
                                 {"KEPT", "kept"},
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
                 decision.final_list() ? "decided" : "ranked", decision.heads(),
                 decision.candidates(), decision.kept(),
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
  const int code = ForEachPeer(
      options, options.nodes,
      [&](AdminStub& stub, grpc::ClientContext* context,
          const std::string& address) {
        return ListAll(stub, context, session_bytes, address, output);
      });
  output.Print(options.output, std::cout);
  return code;
}

}  // namespace farkv
