#include "admin_cli/arguments.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "admin_cli/bad_flag.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/process/address.h"
#include "common/process/flag_checks.h"
#include "common/rpc/credentials.h"

namespace farkv {
namespace {

absl::Status ReadPeers(const char* flag, const std::vector<std::string>& typed,
                       const char* fallback, std::vector<std::string>& peers) {
  if (typed == std::vector<std::string>{"none"}) return absl::OkStatus();
  for (const std::string& list : typed) {
    const auto parsed = ParsePeers(list);
    if (!parsed.ok()) return BadFlag(flag, parsed.status());
    if (parsed->empty()) return BadFlag(flag, "is empty; an address is needed");
    peers.insert(peers.end(), parsed->begin(), parsed->end());
  }
  if (peers.empty()) peers = {fallback};
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTime(const char* flag, const std::string& typed,
                      absl::Duration& time) {
  const auto parsed = ParseDuration(typed);
  if (!parsed.ok()) return BadFlag(flag, parsed.status());
  if (*parsed < absl::Milliseconds(1) || *parsed > absl::Hours(24)) {
    return BadFlag(flag, typed + " is outside 1ms to 24h");
  }
  time = *parsed;
  return absl::OkStatus();
}

absl::Status Finish(const CommonArguments& typed, CliOptions& options) {
  FARKV_RETURN_IF_ERROR(
      ReadPeers("--nodes", typed.nodes, "127.0.0.1:7402", options.nodes));
  FARKV_RETURN_IF_ERROR(
      ReadPeers("--workers", typed.workers, "127.0.0.1:7502", options.workers));
  FARKV_RETURN_IF_ERROR(ReadTime("--timeout", typed.timeout, options.timeout));
  FARKV_RETURN_IF_ERROR(ReadTime("--watch-interval", typed.watch_interval,
                                 options.watch.interval));
  // The files are read again for each channel.
  return MakeChannelCredentials(options.tls).status();
}

}  // namespace farkv
