#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "admin_cli/commands.h"
#include "admin_cli/output.h"
#include "admin_cli/peers.h"
#include "admin_cli/tables.h"
#include "common/base/status_macros.h"
#include "common/rpc/status_codec.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

void PrintHead(const Sequence& sequence) {
  const int64_t lossy = sequence.lossy_tokens();
  std::cout << "Request:    " << sequence.request_id() << "\n"
            << "Session:    " << ShownSession(sequence.session_id()) << "\n"
            << "State:      " << sequence.state() << "\n"
            << "Prompt:     " << sequence.prompt_tokens() << " tokens\n"
            << "Generated:  " << sequence.generated_tokens() << " tokens\n"
            << "T0 (HBM):   " << sequence.t0_tokens() << " tokens"
            << (lossy > 0 ? absl::StrCat(", ", lossy, " lossy: back from T2")
                          : std::string())
            << "\n"
            << "T1 (DDR):   " << sequence.t1_tokens() << " tokens\n"
            << "T2 (DDR):   " << sequence.t2_tokens() << " tokens, compressed\n"
            << "T3 (gone):  " << sequence.t3_tokens() << " tokens\n"
            << "Cold rows:  " << sequence.cold_rows_read() << " read by "
            << sequence.cold_mode() << "\n\n";
}

void PrintTierMap(const CliOptions& options,
                  const GetTierMapResponse& response) {
  if (!options.output.IsDocument() && options.output.format != "name") {
    PrintHead(response.sequence());
  }
  Output output = TierMapOutput();
  for (const auto& page : response.pages()) AddPageTiers(page, output);
  output.Print(options.output, std::cout);
}

absl::StatusOr<GetTierMapResponse> GetTierMap(const CliOptions& options,
                                              const std::string& address,
                                              const std::string& sequence) {
  FARKV_ASSIGN_OR_RETURN(const auto channel, Dial(options, address));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(options.timeout));
  GetTierMapRequest request;
  request.set_sequence(sequence);
  GetTierMapResponse response;
  FARKV_RETURN_IF_ERROR(
      FromGrpcStatus(AdminService::NewStub(channel)->GetTierMap(
          &context, request, &response)));
  return response;
}

}  // namespace

int DescribeSequence(const CliOptions& options, const std::string& sequence) {
  std::vector<std::pair<std::string, absl::Status>> errors;
  bool reached = false;
  for (const std::string& address : options.workers) {
    const auto response = GetTierMap(options, address, sequence);
    if (response.ok()) {
      PrintTierMap(options, *response);
      return kExitOk;
    }
    reached = reached || !IsUnreachable(response.status());
    errors.emplace_back(address, response.status());
  }
  for (const auto& [address, status] : errors) PrintError(address, status);
  return reached ? kExitError : kExitUnhealthy;
}

}  // namespace farkv
