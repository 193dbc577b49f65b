#include "gpu_worker/tokenizer/tokenizer_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/tokenizer/bounded_json.h"
#include "gpu_worker/tokenizer/json_fields.h"
#include "gpu_worker/tokenizer/sentencepiece_model.h"
#include "gpu_worker/tokenizer/tokenizer_json.h"

namespace farkv {
namespace {

using nlohmann::json;

// The largest tokenizer.json that we know of has 20 MB.
constexpr uintmax_t kMaxFileBytes = uintmax_t{128} << 20;

absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("\"", path, "\": ", status.message()));
}

// "bos_token" and the like: a text or an added token; false: not there.
absl::StatusOr<std::optional<int32_t>> ReadNamedToken(
    const json& config, const char* name, const TokenizerSpec& spec) {
  const json* value = FindField(config, name);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) value = FindField(*value, "content");
  if (value == nullptr || !value->is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" must be a text or have a \"content\""));
  }
  return FindToken(spec, value->get<std::string>());
}

// One template, or named ones of which "default" counts.
absl::Status ReadChatTemplate(const json& config, TokenizerSpec& spec) {
  const json* value = FindField(config, "chat_template");
  if (value == nullptr) return absl::OkStatus();
  if (value->is_string()) {
    spec.chat_template = value->get<std::string>();
    return absl::OkStatus();
  }
  if (!value->is_array()) {
    return WrongType("chat_template", "a string or an array", *value);
  }
  for (const json& entry : *value) {
    FARKV_ASSIGN_OR_RETURN(const std::string name, StringField(entry, "name"));
    if (name != "default") continue;
    FARKV_ASSIGN_OR_RETURN(spec.chat_template, StringField(entry, "template"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseTokenizerConfig(absl::string_view text, TokenizerSpec& spec) {
  FARKV_ASSIGN_OR_RETURN(const json config, ParseJsonObject(text));
  FARKV_ASSIGN_OR_RETURN(const auto bos,
                         ReadNamedToken(config, "bos_token", spec));
  if (bos) spec.bos_token = bos;
  FARKV_ASSIGN_OR_RETURN(const auto eos,
                         ReadNamedToken(config, "eos_token", spec));
  if (eos) spec.eos_token = eos;
  if (FindField(config, "add_bos_token") != nullptr) {
    FARKV_ASSIGN_OR_RETURN(spec.add_bos,
                           BoolField(config, "add_bos_token", false));
  }
  return ReadChatTemplate(config, spec);
}

absl::StatusOr<TokenizerSpec> ReadTokenizerFiles(const std::string& path) {
  FARKV_ASSIGN_OR_RETURN(const std::string text,
                         ReadBoundedFile(path, kMaxFileBytes));
  absl::StatusOr<TokenizerSpec> spec = absl::EndsWith(path, ".model")
                                           ? ParseSentencePieceModel(text)
                                           : ParseTokenizerJson(text);
  if (!spec.ok()) return Named(path, spec.status());
  const auto folder = std::filesystem::path(path).parent_path();
  const std::string config = (folder / "tokenizer_config.json").string();
  absl::StatusOr<std::string> beside = ReadBoundedFile(config, kMaxFileBytes);
  if (beside.ok()) {
    FARKV_RETURN_IF_ERROR(Named(config, ParseTokenizerConfig(*beside, *spec)));
  } else if (!absl::IsNotFound(beside.status())) {
    return beside.status();
  }
  beside =
      ReadBoundedFile((folder / "chat_template.jinja").string(), kMaxFileBytes);
  if (beside.ok()) {
    spec->chat_template = *std::move(beside);
  } else if (!absl::IsNotFound(beside.status())) {
    return beside.status();
  }
  return spec;
}

}  // namespace farkv
