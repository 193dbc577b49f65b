#include "gpu_worker/model/model_config.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/config_fields.h"
#include "gpu_worker/model/rope_config.h"
#include "gpu_worker/tokenizer/bounded_json.h"

namespace farkv {
namespace {

using nlohmann::json;

constexpr uintmax_t kMaxConfigBytes = uintmax_t{4} << 20;

// What the reference implementation of an architecture does, whatever
// config.json says.
struct Architecture {
  const char* name;
  const char* model_type;
  bool qk_norm = false;
  bool qkv_bias = false;          // always
  bool attention_bias = false;    // biases of all four projections on request
  bool mlp_bias = false;          // on request
  bool requested_window = false;  // only with use_sliding_window
  int32_t default_window = 0;
  int32_t default_head_dim = 0;  // 0: hidden_size / num_attention_heads
  bool states_kv_heads = true;   // else as many as query heads by default
};
constexpr Architecture kArchitectures[] = {
    {.name = "LlamaForCausalLM",
     .model_type = "llama",
     .attention_bias = true,
     .mlp_bias = true,
     .states_kv_heads = false},
    {.name = "MistralForCausalLM",
     .model_type = "mistral",
     .default_window = 4096},
    {.name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .qkv_bias = true,
     .requested_window = true,
     .default_window = 4096},
    {.name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .qk_norm = true,
     .attention_bias = true,
     .requested_window = true,
     .default_window = 4096,
     .default_head_dim = 128},
};

absl::StatusOr<const Architecture*> FindArchitecture(const json& object) {
  const auto found = object.find("architectures");
  if (found == object.end() || !found->is_array() || found->empty() ||
      !(*found)[0].is_string()) {
    return absl::InvalidArgumentError("field architectures is missing");
  }
  const auto name = (*found)[0].get<std::string>();
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", architecture.name);
    if (name != architecture.name) continue;
    const json* type = ConfigFields(object).Find("model_type");
    if (type != nullptr && *type != json(architecture.model_type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model_type is ", Excerpt(*type), " and architectures names ", name,
          ", whose model_type is \"", architecture.model_type, "\""));
    }
    return &architecture;
  }
  return absl::UnimplementedError(
      absl::StrCat("architecture is \"", name, "\", supported are ", known));
}

absl::Status CheckLayerTypes(const json* types) {
  if (types == nullptr) return absl::OkStatus();
  if (!types->is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer_types is ", Excerpt(*types), ", must be an array"));
  }
  for (const json& type : *types) {
    if (type == json("full_attention") || type == json("sliding_attention")) {
      continue;
    }
    return absl::UnimplementedError(
        absl::StrCat("layer_types has ", Excerpt(type),
                     ", supported are full_attention and sliding_attention"));
  }
  return absl::OkStatus();
}

// Fields that would change the arithmetic in a way that we do not have.
absl::Status CheckArithmetic(const json& object) {
  const ConfigFields fields(object);
  const json* act = fields.Find("hidden_act");
  if (act != nullptr && *act != json("silu") && *act != json("swish")) {
    return absl::UnimplementedError(absl::StrCat(
        "hidden_act is ", Excerpt(*act), ", only silu is supported"));
  }
  if (const json* found = fields.Find("quantization_config")) {
    return absl::UnimplementedError(
        absl::StrCat("quantization_config is ", Excerpt(*found),
                     ", supported are plain weights and GGUF files"));
  }
  const json* rotary = fields.Find("partial_rotary_factor");
  if (rotary != nullptr && *rotary != json(1.0)) {
    return absl::UnimplementedError(absl::StrCat("partial_rotary_factor is ",
                                                 Excerpt(*rotary),
                                                 ", only 1 is supported"));
  }
  return CheckLayerTypes(fields.Find("layer_types"));
}

absl::Status ReadBiases(const json& object, const Architecture& architecture,
                        ModelConfig& config) {
  ConfigFields fields(object);
  const bool attention = fields.BoolOr("attention_bias", false);
  const bool mlp = fields.BoolOr("mlp_bias", false);
  FARKV_RETURN_IF_ERROR(fields.status());
  const bool implied = architecture.qkv_bias || architecture.attention_bias;
  if ((attention && !implied) || (mlp && !architecture.mlp_bias)) {
    return absl::InvalidArgumentError(
        absl::StrCat(attention && !implied ? "attention_bias" : "mlp_bias",
                     " is true, which ", architecture.name, " does not have"));
  }
  config.qkv_bias =
      architecture.qkv_bias || (architecture.attention_bias && attention);
  config.output_bias = architecture.attention_bias && attention;
  config.mlp_bias = mlp;
  return absl::OkStatus();
}

void ReadShape(ConfigFields& fields, const Architecture& architecture,
               ModelConfig& config) {
  config.hidden_size = fields.Int("hidden_size", 1, 1 << 17);
  config.intermediate_size = fields.Int("intermediate_size", 1, 1 << 20);
  config.num_layers = fields.Int("num_hidden_layers", 1, 1024);
  config.num_query_heads = fields.Int("num_attention_heads", 1, 1024);
  config.num_kv_heads =
      architecture.states_kv_heads
          ? fields.Int("num_key_value_heads", 1, 256)
          : fields.IntOr("num_key_value_heads", config.num_query_heads, 1, 256);
  config.vocab_size = fields.Int("vocab_size", 1, 1 << 22);
  config.max_position = fields.Int("max_position_embeddings", 1, kMaxPositions);
  const int32_t derived = architecture.default_head_dim > 0
                              ? architecture.default_head_dim
                              : config.hidden_size / config.num_query_heads;
  config.head_dim = fields.IntOr("head_dim", derived, 16, 512);
  config.rms_norm_epsilon =
      static_cast<float>(fields.RealOr("rms_norm_eps", 1e-6));
  config.tied_embeddings = fields.BoolOr("tie_word_embeddings", false);
}

// A null sliding_window means none, an absent one the default.
absl::Status ReadWindow(const json& object, const Architecture& architecture,
                        ModelConfig& config) {
  if (architecture.default_window == 0) return absl::OkStatus();
  ConfigFields fields(object);
  const int32_t absent =
      object.contains("sliding_window") ? 0 : architecture.default_window;
  int32_t window = fields.IntOr("sliding_window", absent, 1, kMaxPositions);
  if (architecture.requested_window) {
    // Layers from max_window_layers on have the window, unless layer_types
    // says which.
    bool layers = fields.IntOr("max_window_layers", 28, 0, kMaxPositions) <
                  config.num_layers;
    if (const json* types = fields.Find("layer_types")) {
      layers = std::ranges::any_of(*types, [](const json& type) {
        return type != json("full_attention");
      });
    }
    if (!layers || !fields.BoolOr("use_sliding_window", false)) window = 0;
  }
  FARKV_RETURN_IF_ERROR(fields.status());
  config.sliding_window = window;
  if (window > 0) config.max_position = std::min(config.max_position, window);
  return absl::OkStatus();
}

// "eos_token_id", one id or several, added to those that are there.
absl::Status ReadEndTokens(const json& object, ModelConfig& config) {
  ConfigFields fields(object);
  const json* found = fields.Find("eos_token_id");
  if (found == nullptr) return absl::OkStatus();
  const size_t count = found->is_array() ? found->size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const json& id = found->is_array() ? (*found)[i] : *found;
    const int32_t token =
        fields.IntIn("eos_token_id", id, 0, config.vocab_size - 1);
    auto& ends = config.eos_tokens;
    if (std::find(ends.begin(), ends.end(), token) == ends.end()) {
      ends.push_back(token);
    }
  }
  return fields.status();
}

absl::Status ReadTokens(const json& object, ModelConfig& config) {
  ConfigFields fields(object);
  config.bos_token = fields.IntOr("bos_token_id", -1, 0, config.vocab_size - 1);
  FARKV_RETURN_IF_ERROR(fields.status());
  return ReadEndTokens(object, config);
}

absl::Status Named(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("\"", path, "\": ", status.message()));
}

absl::StatusOr<ModelConfig> Read(const json& object) {
  ModelConfig config;
  FARKV_ASSIGN_OR_RETURN(const Architecture* architecture,
                         FindArchitecture(object));
  config.architecture = architecture->name;
  config.qk_norm = architecture->qk_norm;
  FARKV_RETURN_IF_ERROR(CheckArithmetic(object));
  FARKV_RETURN_IF_ERROR(ReadBiases(object, *architecture, config));
  ConfigFields fields(object);
  ReadShape(fields, *architecture, config);
  FARKV_RETURN_IF_ERROR(fields.status());
  FARKV_RETURN_IF_ERROR(ReadRope(object, config));
  FARKV_RETURN_IF_ERROR(ReadWindow(object, *architecture, config));
  FARKV_RETURN_IF_ERROR(ReadTokens(object, config));
  FARKV_RETURN_IF_ERROR(config.Validate());
  return config;
}

}  // namespace

absl::StatusOr<ModelConfig> ModelConfig::Parse(absl::string_view text) {
  FARKV_ASSIGN_OR_RETURN(const json object, ParseJsonObject(text));
  return Read(object);
}

absl::Status ModelConfig::AddGenerationConfig(absl::string_view text) {
  FARKV_ASSIGN_OR_RETURN(const json object, ParseJsonObject(text));
  return ReadEndTokens(object, *this);
}

absl::StatusOr<ModelConfig> ModelConfig::Load(const std::string& path) {
  const absl::StatusOr<std::string> text =
      ReadBoundedFile(path, kMaxConfigBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(text.status().message(),
                                            "; a model's folder must have it"));
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<ModelConfig> config = Parse(*text);
  if (!config.ok()) return Named(path, config.status());
  const std::string beside =
      std::filesystem::path(path).replace_filename("generation_config.json");
  const auto generation = ReadBoundedFile(beside, kMaxConfigBytes);
  if (absl::IsNotFound(generation.status())) return config;
  if (!generation.ok()) return generation.status();
  const absl::Status added = config->AddGenerationConfig(*generation);
  if (!added.ok()) return Named(beside, added);
  return config;
}

absl::Status ModelConfig::Validate() const {
  if (num_kv_heads < 1 || num_query_heads % num_kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_attention_heads is ", num_query_heads,
                     ", not a multiple of num_key_value_heads ", num_kv_heads));
  }
  if (!(rope_theta > 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rope_theta is ", rope_theta, ", must be above 1"));
  }
  FARKV_RETURN_IF_ERROR(rope_scaling.Validate(head_dim));
  return Geometry(DType::kBf16).Validate();
}

}  // namespace farkv
