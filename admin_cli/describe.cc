#include <iostream>

#include "absl/strings/escaping.h"
#include "admin_cli/commands.h"
#include "admin_cli/output.h"
#include "admin_cli/peers.h"
#include "common/rpc/status_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

void PrintHead(const Sequence& sequence) {
  std::cout << "Request:    " << sequence.request_id() << "\n"
            << "Session:    " << absl::BytesToHexString(sequence.session_id())
            << "\n"
            << "State:      " << sequence.state() << "\n"
            << "Prompt:     " << sequence.prompt_tokens() << " tokens\n"
            << "Generated:  " << sequence.generated_tokens() << " tokens\n"
            << "T0 (HBM):   " << sequence.t0_tokens() << " tokens\n"
            << "T1 (DDR):   " << sequence.t1_tokens() << " tokens\n"
            << "Cold rows:  " << sequence.cold_rows_read() << " read by "
            << sequence.cold_mode() << "\n\n";
}

}  // namespace

int DescribeSequence(const CliOptions& options, const std::string& sequence) {
  absl::Status last = absl::NotFoundError("no worker was asked");
  std::string last_address = sequence;
  for (const std::string& address : options.workers) {
    GetTierMapResponse response;
    CliOptions quiet = options;
    auto channel = Dial(quiet, address);
    last_address = address;
    last = channel.status();
    if (!channel.ok()) continue;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(options.timeout));
    GetTierMapRequest request;
    request.set_sequence(sequence);
    last = FromGrpcStatus(AdminService::NewStub(*channel)->GetTierMap(
        &context, request, &response));
    if (!last.ok()) continue;
    if (options.output == "table") PrintHead(response.sequence());
    Output output("TierMap", {{"PAGE", "page"},
                              {"STORED", "stored"},
                              {"NODE", "node"},
                              {"TIER OF EACH TOKEN", "tiers"}});
    for (const auto& page : response.pages()) {
      output.AddRow(
          {page.page_index(), page.stored(), page.node_id(), page.tiers()});
    }
    output.Print(options.output, std::cout);
    return kExitOk;
  }
  PrintError(last_address, last);
  return absl::IsUnavailable(last) ? kExitUnhealthy : kExitError;
}

}  // namespace farkv
