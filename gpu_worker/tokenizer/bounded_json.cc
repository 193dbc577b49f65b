#include "gpu_worker/tokenizer/bounded_json.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

using nlohmann::json;

// Counts brackets outside strings. The parser stops at the first thing that is
// not JSON, and up to there it sees the same brackets.
absl::Status CheckNesting(absl::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth <= kMaxJsonNesting) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("JSON nested deeper than ", kMaxJsonNesting,
                       " levels from byte ", at, " on"));
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadBoundedFile(const std::string& path,
                                            uintmax_t max_bytes) {
  // Asked before it is opened: opening a FIFO would wait for a writer.
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind != std::filesystem::file_type::regular &&
      kind != std::filesystem::file_type::not_found &&
      kind != std::filesystem::file_type::none) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is not a regular file"));
  }
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file;
  if (!error) file.open(path, std::ios::binary);
  if (error || !file) {
    return absl::NotFoundError(
        absl::StrCat("cannot open \"", path,
                     "\": ", error ? error.message() : std::strerror(errno)));
  }
  if (bytes > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" has ", bytes,
                                                   " bytes, at most ",
                                                   max_bytes, " are read"));
  }
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

absl::StatusOr<json> ParseJsonObject(absl::string_view text) {
  FARKV_RETURN_IF_ERROR(CheckNesting(text));
  json object = json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("it is not a JSON object");
  }
  return object;
}

std::string Excerpt(const json& value) {
  constexpr size_t kMaxBytes = 120;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() <= kMaxBytes) return text;
  text.resize(kMaxBytes);
  return text + "...";
}

}  // namespace farkv
