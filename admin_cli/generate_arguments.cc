// The checks of what was typed for `farkvctl generate`.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "admin_cli/arguments.h"
#include "admin_cli/bad_flag.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "common/process/address.h"

namespace farkv {
namespace {

// As the worker has it (GenerationRequest).
constexpr size_t kMaxRequestIdBytes = 256;

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

absl::StatusOr<std::string> ReadTextFile(const char* flag,
                                         const std::string& path) {
  const std::string what = absl::StrCat(flag, ": ", ShownText(path));
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

// [{"role": "user", "content": "..."}, ...]; the worker checks the roles.
absl::Status ReadMessages(const std::string& text, GenerateOptions& options) {
  const auto bad = [](absl::string_view what) {
    return BadFlag("--messages-file",
                   absl::StrCat(what,
                                ", must be a JSON list of objects with "
                                "role and content"));
  };
  FARKV_RETURN_IF_ERROR(CheckText("--messages-file", text));
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array() || list.empty()) return bad("has no list of messages");
  for (size_t i = 0; i < list.size(); ++i) {
    const auto& message = list[i];
    const auto is_text = [&message](const char* name) {
      return message.contains(name) && message[name].is_string();
    };
    if (!message.is_object() || !is_text("role") || !is_text("content") ||
        message.size() != 2) {
      return bad(absl::StrCat("message ", i, " is no such message"));
    }
    options.messages.emplace_back(message["role"].get<std::string>(),
                                  message["content"].get<std::string>());
  }
  return absl::OkStatus();
}

// "ID:BIAS,ID:BIAS".
absl::Status ReadLogitBias(const std::string& typed, GenerateOptions& options) {
  for (const absl::string_view item : absl::StrSplit(typed, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    int32_t token = 0;
    float bias = 0;
    if (!absl::SimpleAtoi(parts.first, &token) || token < 0 ||
        !absl::SimpleAtof(parts.second, &bias)) {
      return BadFlag("--logit-bias",
                     absl::StrCat(ShownText(std::string(item)),
                                  " is no ID:BIAS, a token id and a number"));
    }
    for (const auto& [other, value] : options.logit_bias) {
      if (other != token) continue;
      return BadFlag("--logit-bias",
                     absl::StrCat("token ", token, " is given twice"));
    }
    options.logit_bias.emplace_back(token, bias);
  }
  return absl::OkStatus();
}

absl::Status ReadPrompt(const GenerateArguments& typed,
                        GenerateOptions& options) {
  const int given = (typed.prompt ? 1 : 0) + (typed.prompt_file ? 1 : 0) +
                    (typed.prompt_ids ? 1 : 0) + (typed.messages_file ? 1 : 0);
  if (given != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one of --prompt, --prompt-file, --prompt-ids and "
                     "--messages-file is needed; ",
                     given == 0 ? "none" : absl::StrCat(given), " given"));
  }
  if (typed.messages_file) {
    FARKV_ASSIGN_OR_RETURN(
        const std::string text,
        ReadTextFile("--messages-file", *typed.messages_file));
    return ReadMessages(text, options);
  }
  if (typed.prompt_ids) {
    return ReadIds("--prompt-ids", *typed.prompt_ids, options.prompt_ids);
  }
  if (typed.prompt) {
    if (typed.prompt->empty()) return BadFlag("--prompt", "is empty");
    options.prompt = *typed.prompt;
    return CheckText("--prompt", options.prompt);
  }
  FARKV_ASSIGN_OR_RETURN(options.prompt,
                         ReadTextFile("--prompt-file", *typed.prompt_file));
  return CheckText("--prompt-file", options.prompt);
}

absl::Status ReadChat(const GenerateArguments& typed,
                      GenerateOptions& options) {
  if (options.chat && (typed.prompt_ids || typed.messages_file)) {
    return BadFlag("--chat", absl::StrCat("takes a text, not --",
                                          typed.prompt_ids ? "prompt-ids"
                                                           : "messages-file"));
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
  for (const std::string& items : typed.logit_bias) {
    FARKV_RETURN_IF_ERROR(ReadLogitBias(items, options));
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
