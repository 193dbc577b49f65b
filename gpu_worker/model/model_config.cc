#include "gpu_worker/model/model_config.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

using nlohmann::json;

// Reads fields of config.json and keeps the first error.
class FieldReader {
 public:
  explicit FieldReader(const json& object) : object_(object) {}

  int32_t Int(const char* field, int32_t low, int32_t high) {
    if (!object_.contains(field)) return Missing(field);
    return IntOr(field, 0, low, high);
  }

  int32_t IntOr(const char* field, int32_t fallback, int32_t low,
                int32_t high) {
    const auto found = object_.find(field);
    if (found == object_.end() || found->is_null()) return fallback;
    if (!found->is_number_integer()) return Refuse(field, *found, low, high);
    const auto value = found->get<int64_t>();
    if (value < low || value > high) return Refuse(field, *found, low, high);
    return static_cast<int32_t>(value);
  }

  double RealOr(const char* field, double fallback) {
    const auto found = object_.find(field);
    if (found == object_.end() || found->is_null()) return fallback;
    if (!found->is_number() || !(found->get<double>() > 0.0)) {
      Fail(absl::StrCat(field, " is ", found->dump(), ", must be positive"));
      return fallback;
    }
    return found->get<double>();
  }

  bool BoolOr(const char* field, bool fallback) {
    const auto found = object_.find(field);
    if (found == object_.end() || !found->is_boolean()) return fallback;
    return found->get<bool>();
  }

  const absl::Status& status() const { return status_; }

 private:
  int32_t Missing(const char* field) {
    Fail(absl::StrCat("field ", field, " is missing"));
    return 0;
  }
  int32_t Refuse(const char* field, const json& value, int32_t low,
                 int32_t high) {
    Fail(absl::StrCat(field, " is ", value.dump(),
                      ", must be a whole number in [", low, ", ", high, "]"));
    return 0;
  }
  void Fail(const std::string& message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  }

  const json& object_;
  absl::Status status_;
};

absl::Status CheckArchitecture(const json& object, ModelConfig& config) {
  const auto found = object.find("architectures");
  if (found == object.end() || !found->is_array() || found->empty() ||
      !(*found)[0].is_string()) {
    return absl::InvalidArgumentError("field architectures is missing");
  }
  config.architecture = (*found)[0].get<std::string>();
  if (config.architecture == "Qwen3ForCausalLM") {
    config.qk_norm = true;
  } else if (config.architecture != "LlamaForCausalLM") {
    return absl::UnimplementedError(absl::StrCat(
        "architecture is \"", config.architecture,
        "\", supported are Qwen3ForCausalLM and LlamaForCausalLM"));
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (object.value(bias, json(false)) == json(true)) {
      return absl::UnimplementedError(
          absl::StrCat(bias, " is true, which is not supported"));
    }
  }
  const json scaling = object.value("rope_scaling", json(nullptr));
  if (!scaling.is_null()) {
    return absl::UnimplementedError(absl::StrCat(
        "rope_scaling is ", scaling.dump(), ", only null is supported"));
  }
  if (const json act = object.value("hidden_act", json("silu"));
      act != json("silu")) {
    return absl::UnimplementedError(
        absl::StrCat("hidden_act is ", act.dump(), ", only silu is supported"));
  }
  return absl::OkStatus();
}

void ReadTokens(const json& object, ModelConfig& config) {
  const json bos = object.value("bos_token_id", json(nullptr));
  if (bos.is_number_integer()) config.bos_token = bos.get<int32_t>();
  const json eos = object.value("eos_token_id", json(nullptr));
  if (eos.is_number_integer()) config.eos_tokens = {eos.get<int32_t>()};
  if (!eos.is_array()) return;
  for (const json& id : eos) {
    if (id.is_number_integer()) config.eos_tokens.push_back(id.get<int32_t>());
  }
}

absl::Status ReadShape(const json& object, ModelConfig& config) {
  FieldReader reader(object);
  config.hidden_size = reader.Int("hidden_size", 1, 1 << 17);
  config.intermediate_size = reader.Int("intermediate_size", 1, 1 << 20);
  config.num_layers = reader.Int("num_hidden_layers", 1, 1024);
  config.num_query_heads = reader.Int("num_attention_heads", 1, 1024);
  config.num_kv_heads =
      reader.IntOr("num_key_value_heads", config.num_query_heads, 1, 256);
  config.vocab_size = reader.Int("vocab_size", 1, 1 << 22);
  config.max_position = reader.Int("max_position_embeddings", 1, 1 << 30);
  const int32_t derived = config.num_query_heads > 0
                              ? config.hidden_size / config.num_query_heads
                              : 0;
  config.head_dim = reader.IntOr("head_dim", derived, 16, 512);
  config.rms_norm_epsilon =
      static_cast<float>(reader.RealOr("rms_norm_eps", 1e-6));
  config.rope_theta = reader.RealOr("rope_theta", 10000.0);
  config.tied_embeddings = reader.BoolOr("tie_word_embeddings", false);
  FARKV_RETURN_IF_ERROR(reader.status());
  if (config.num_query_heads % config.num_kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_attention_heads is ", config.num_query_heads,
        ", not a multiple of num_key_value_heads ", config.num_kv_heads));
  }
  return config.Geometry(DType::kBf16).Validate();
}

}  // namespace

absl::StatusOr<ModelConfig> ModelConfig::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot open \"", path, "\""));
  }
  const json object = json::parse(file, nullptr, false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is not a JSON object"));
  }
  ModelConfig config;
  absl::Status status = CheckArchitecture(object, config);
  if (status.ok()) status = ReadShape(object, config);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("\"", path, "\": ", status.message()));
  }
  ReadTokens(object, config);
  return config;
}

std::vector<double> ModelConfig::RopeFrequencies() const {
  std::vector<double> frequencies;
  for (int32_t i = 0; i < head_dim; i += 2) {
    frequencies.push_back(
        std::pow(rope_theta, -static_cast<double>(i) / head_dim));
  }
  return frequencies;
}

}  // namespace farkv
