#include "admin_cli/plan_model.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{4} << 20;
constexpr int64_t kMaxField = 1 << 24;

// A whole number of `object`; `fallback` where it is absent or null, unless
// that is 0. The first error stays.
int32_t Field(const json& object, const char* name, int32_t fallback,
              absl::Status& status) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    if (fallback == 0) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("field ", name, " is missing")));
    }
    return fallback;
  }
  const bool fits = found->is_number_integer() && found->get<double>() >= 1 &&
                    found->get<double>() <= static_cast<double>(kMaxField);
  if (fits) return found->get<int32_t>();
  status.Update(absl::InvalidArgumentError(
      absl::StrCat(name, " is ", ShownText(found->dump()),
                   ", must be a whole number in [1, ", kMaxField, "]")));
  return fallback;
}

// Qwen3 has heads of 128 unless it says otherwise, all others share the hidden
// state among them.
int32_t DefaultHeadDim(const json& object, const ModelShape& shape) {
  if (object.value("model_type", json()) == json("qwen3")) return 128;
  return shape.hidden_size / std::max(shape.num_query_heads, 1);
}

}  // namespace

absl::StatusOr<ModelShape> ParseModelShape(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("is no JSON object");
  }
  ModelShape shape;
  absl::Status status;
  shape.num_layers = Field(object, "num_hidden_layers", 0, status);
  shape.num_query_heads = Field(object, "num_attention_heads", 0, status);
  shape.hidden_size = Field(object, "hidden_size", 0, status);
  shape.intermediate_size = Field(object, "intermediate_size", 0, status);
  shape.vocab_size = Field(object, "vocab_size", 0, status);
  FARKV_RETURN_IF_ERROR(status);
  shape.num_kv_heads =
      Field(object, "num_key_value_heads", shape.num_query_heads, status);
  shape.head_dim =
      Field(object, "head_dim", DefaultHeadDim(object, shape), status);
  FARKV_RETURN_IF_ERROR(status);
  FARKV_RETURN_IF_ERROR(shape.Validate());
  return shape;
}

absl::StatusOr<ModelShape> ReadModelShape(const std::string& path) {
  std::string file = path;
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) file += "/config.json";
  std::ifstream stream(file);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat(
        ShownText(file), " cannot be read: ", std::strerror(errno)));
  }
  std::string text(kMaxConfigBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(ShownText(file), " has more than ", kMaxConfigBytes,
                     " bytes, which is no config.json"));
  }
  const auto shape = ParseModelShape(text);
  if (shape.ok()) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat(ShownText(file), ": ", shape.status().message()));
}

}  // namespace farkv
