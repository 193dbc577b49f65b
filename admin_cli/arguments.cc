#include "admin_cli/arguments.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "admin_cli/bad_flag.h"
#include "common/base/parse.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/process/address.h"
#include "common/process/flag_checks.h"
#include "common/rpc/credentials.h"

namespace farkv {
namespace {

// As the worker has it (GenerationRequest).
constexpr size_t kMaxRequestIdBytes = 256;

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

absl::Status ReadIds(const char* flag, const std::string& typed,
                     std::vector<int32_t>& ids) {
  for (absl::string_view piece : absl::StrSplit(typed, ',')) {
    const std::string text(absl::StripAsciiWhitespace(piece));
    int32_t id = 0;
    if (!absl::SimpleAtoi(text, &id) || id < 0) {
      return BadFlag(flag, absl::StrCat(ShownText(text),
                                        " is no token id; ids are "
                                        "whole numbers from 0 to ",
                                        std::numeric_limits<int32_t>::max()));
    }
    ids.push_back(id);
  }
  return absl::OkStatus();
}

// A worker takes requests of at most 16 MiB; the rest of one has room beside.
constexpr size_t kMaxTextBytes = (size_t{16} << 20) - (size_t{64} << 10);

absl::Status CheckText(const char* flag, const std::string& text) {
  if (text.size() > kMaxTextBytes) {
    return BadFlag(flag, absl::StrCat("has ", text.size(), " bytes, at most ",
                                      kMaxTextBytes, " fit a request"));
  }
  const size_t at = FindInvalidUtf8(text);
  if (at == std::string::npos) return absl::OkStatus();
  return BadFlag(
      flag, absl::StrCat("is not UTF-8 at byte ", at, " of ", text.size(), ": ",
                         ShownText(text.substr(at))));
}

absl::StatusOr<std::string> ReadPromptFile(const std::string& path) {
  const std::string what = absl::StrCat("--prompt-file: ", ShownText(path));
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(what + " is a directory");
  }
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(what, " cannot be read: ", std::strerror(errno)));
  }
  // No more than tells that it is too long: a device file has no end.
  std::string text(kMaxTextBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) return absl::InvalidArgumentError(what + " is empty");
  if (text.size() <= kMaxTextBytes) return text;
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has more than the ", kMaxTextBytes, " bytes that fit a request"));
}

absl::Status ReadPrompt(const GenerateArguments& typed,
                        GenerateOptions& options) {
  const int given = (typed.prompt ? 1 : 0) + (typed.prompt_file ? 1 : 0) +
                    (typed.prompt_ids ? 1 : 0);
  if (given != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "one of --prompt, --prompt-file and --prompt-ids is needed; ",
        given == 0 ? "none" : absl::StrCat(given), " given"));
  }
  if (typed.prompt_ids) {
    return ReadIds("--prompt-ids", *typed.prompt_ids, options.prompt_ids);
  }
  if (typed.prompt) {
    if (typed.prompt->empty()) return BadFlag("--prompt", "is empty");
    options.prompt = *typed.prompt;
    return CheckText("--prompt", options.prompt);
  }
  FARKV_ASSIGN_OR_RETURN(options.prompt, ReadPromptFile(*typed.prompt_file));
  return CheckText("--prompt-file", options.prompt);
}

absl::Status ReadChat(const GenerateArguments& typed,
                      GenerateOptions& options) {
  if (options.chat && typed.prompt_ids) {
    return BadFlag("--chat", "takes a text, not --prompt-ids");
  }
  if (!typed.system) return absl::OkStatus();
  if (!options.chat) return BadFlag("--system", "goes with --chat only");
  if (typed.system->empty()) return BadFlag("--system", "is empty");
  options.system = *typed.system;
  return CheckText("--system", options.system);
}

absl::Status ReadSeed(const std::string& typed, GenerateOptions& options) {
  if (typed.empty()) return absl::OkStatus();
  uint64_t seed = 0;
  // SimpleAtoi takes a sign and blanks.
  if (typed.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(typed, &seed)) {
    return BadFlag(
        "--seed",
        absl::StrCat(ShownText(typed), " is no whole number from 0 to ",
                     std::numeric_limits<uint64_t>::max()));
  }
  options.seed = seed;
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

absl::Status Finish(const GenerateArguments& typed, GenerateOptions& options) {
  if (const auto worker = ParsePeerAddress(typed.worker); !worker.ok()) {
    return BadFlag("--worker", worker.status());
  }
  options.worker = typed.worker;
  FARKV_RETURN_IF_ERROR(ReadPrompt(typed, options));
  FARKV_RETURN_IF_ERROR(ReadChat(typed, options));
  FARKV_RETURN_IF_ERROR(ReadSeed(typed.seed, options));
  for (const std::string& ids : typed.stop_ids) {
    FARKV_RETURN_IF_ERROR(ReadIds("--stop-ids", ids, options.stop_ids));
  }
  for (const std::string& ids : typed.forced_ids) {
    FARKV_RETURN_IF_ERROR(ReadIds("--forced-ids", ids, options.forced_ids));
  }
  for (const std::string& stop : options.stop_texts) {
    if (stop.empty()) return BadFlag("--stop", "is empty");
    FARKV_RETURN_IF_ERROR(CheckText("--stop", stop));
  }
  if (const auto s = CheckPrintable(options.request_id); !s.ok()) {
    return BadFlag("--request-id", s);
  }
  if (options.request_id.size() > kMaxRequestIdBytes) {
    return BadFlag("--request-id",
                   absl::StrCat(ShownText(options.request_id), " has ",
                                options.request_id.size(), " bytes, at most ",
                                kMaxRequestIdBytes, " are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace farkv
