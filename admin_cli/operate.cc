// Drain, undrain and verify.
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "admin_cli/commands.h"
#include "admin_cli/peers.h"
#include "admin_cli/tables.h"

namespace farkv {
namespace {

using namespace admin::v1;  // NOLINT: the messages of the admin service

// What a process says while it drains; the last word is an error when the
// time is over first.
grpc::Status FollowDrain(grpc::ClientReader<DrainResponse>& stream,
                         const std::string& address) {
  DrainResponse response;
  int32_t shown = -1;
  while (stream.Read(&response)) {
    if (response.sessions_left() == shown && !response.done()) continue;
    shown = response.sessions_left();
    std::cout << address << ": " << (response.done() ? "drained" : "draining")
              << ", " << shown << " left\n"
              << std::flush;
  }
  const grpc::Status status = stream.Finish();
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (!late || shown < 0) return status;
  return grpc::Status(
      grpc::StatusCode::ABORTED,
      absl::StrCat("not drained within --timeout, ", shown,
                   " left; it goes on draining until undrain or its end"));
}

int SetDraining(const CliOptions& options,
                const std::vector<std::string>& addresses, bool drain,
                bool wait) {
  return ForEachPeer(
      options, addresses,
      [drain, wait](AdminStub& stub, grpc::ClientContext* context,
                    const std::string& address) {
        DrainRequest request;
        request.set_drain(drain);
        const auto stream = stub.Drain(context, request);
        if (drain && wait) return FollowDrain(*stream, address);
        DrainResponse response;
        if (!stream->Read(&response)) return stream->Finish();
        context->TryCancel();
        stream->Finish();  // CANCELLED, as wanted
        std::cout << address << ": "
                  << (drain ? absl::StrCat("draining, ",
                                           response.sessions_left(), " left")
                            : "takes work again")
                  << "\n";
        return grpc::Status::OK;
      });
}

}  // namespace

int Drain(const CliOptions& options, const std::vector<std::string>& addresses,
          bool wait) {
  return SetDraining(options, addresses, true, wait);
}

int Undrain(const CliOptions& options,
            const std::vector<std::string>& addresses) {
  return SetDraining(options, addresses, false, false);
}

int Verify(const CliOptions& options, const std::string& session) {
  Output output = VerifyOutput();
  uint64_t mismatches = 0;
  const std::string session_bytes = absl::HexStringToBytes(session);
  const int code = ForEachPeer(
      options, options.nodes,
      [&](AdminStub& stub, grpc::ClientContext* context,
          const std::string& address) {
        VerifyRequest request;
        request.set_session_id(session_bytes);
        VerifyResponse response;
        const auto status = stub.Verify(context, request, &response);
        if (!status.ok()) return status;
        mismatches += response.mismatches();
        AddVerified(response, address, output);
        return status;
      });
  output.Print(options.output, std::cout);
  return mismatches > 0 ? kExitUnhealthy : code;
}

}  // namespace farkv
