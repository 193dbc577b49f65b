#include "gpu_worker/model/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/gguf_fields.h"
#include "gpu_worker/model/gguf_tokenizer.h"

namespace farkv {
namespace {

using Kind = RopeScaling::Kind;

struct GgufArchitecture {
  const char* gguf;
  const char* hugging_face;
  bool qk_norm = false;
  bool qkv_bias = false;  // always; the others have what the file has
};
constexpr GgufArchitecture kGgufArchitectures[] = {
    {.gguf = "llama", .hugging_face = "LlamaForCausalLM"},
    {.gguf = "qwen2", .hugging_face = "Qwen2ForCausalLM", .qkv_bias = true},
    {.gguf = "qwen3", .hugging_face = "Qwen3ForCausalLM", .qk_norm = true},
};

// Keys of relatives of the Llama family that share its name in GGUF; each
// changes what is computed.
constexpr const char* kForeignKeys[] = {"attention.scale",
                                        "attention.clamp_kqv",
                                        "attention.causal",
                                        "attn_logit_softcapping",
                                        "final_logit_softcapping",
                                        "logit_scale",
                                        "residual_scale",
                                        "embedding_scale",
                                        "use_parallel_residual",
                                        "attention.max_alibi_bias",
                                        "rope.scaling.yarn_ext_factor",
                                        "rope.scaling.yarn_attn_factor",
                                        "rope.scaling.yarn_log_multiplier",
                                        "rope.dimension_sections"};

absl::Status Named(const GgufFile& file, const absl::Status& status) {
  return absl::Status(
      status.code(), absl::StrCat("\"", file.path(), "\": ", status.message()));
}

absl::StatusOr<const GgufArchitecture*> FindArchitecture(const GgufFile& file) {
  FARKV_ASSIGN_OR_RETURN(const auto name, file.String("general.architecture"));
  std::string known;
  for (const GgufArchitecture& architecture : kGgufArchitectures) {
    if (name == architecture.gguf) return &architecture;
    absl::StrAppend(&known, known.empty() ? "" : ", ", architecture.gguf);
  }
  return absl::UnimplementedError(
      absl::StrCat("\"", file.path(), "\": general.architecture is \"",
                   std::string(name), "\", supported are ", known));
}

absl::Status CheckArithmetic(const GgufFile& file, const std::string& prefix) {
  for (const char* key : kForeignKeys) {
    if (!file.Has(prefix + key)) continue;
    return absl::UnimplementedError(absl::StrCat(
        "\"", file.path(), "\" has key ", prefix, key, ", not supported"));
  }
  GgufFields fields(file, prefix);
  const int32_t experts = fields.IntOr("expert_count", 0, 0, 1 << 16);
  FARKV_RETURN_IF_ERROR(fields.status());
  if (experts == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("\"", file.path(), "\" is a mixture of ", experts,
                   " experts; only dense models are supported"));
}

const GgufTensor* FindTensor(const GgufFile& file, const char* name) {
  const auto found = file.tensors().find(name);
  return found == file.tensors().end() ? nullptr : &found->second;
}

void ReadShape(GgufFields& fields, ModelConfig& config) {
  config.hidden_size = fields.Int("embedding_length", 1, 1 << 17);
  config.intermediate_size = fields.Int("feed_forward_length", 1, 1 << 20);
  config.num_layers = fields.Int("block_count", 1, 1024);
  config.num_query_heads = fields.Int("attention.head_count", 1, 1024, 1);
  config.num_kv_heads =
      fields.IntOr("attention.head_count_kv", config.num_query_heads, 1, 256);
  config.max_position = fields.Int("context_length", 1, kMaxPositions);
  config.head_dim =
      fields.IntOr("attention.key_length",
                   config.hidden_size / config.num_query_heads, 16, 512);
  // What must be head_dim where it is given.
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    fields.IntOr(key, config.head_dim, config.head_dim, config.head_dim);
  }
  const double epsilon = fields.Real("attention.layer_norm_rms_epsilon");
  if (fields.status().ok() && !(epsilon > 0.0 && epsilon < 1.0)) {
    fields.Fail("attention.layer_norm_rms_epsilon", absl::StrCat(epsilon),
                "in (0, 1)");
  }
  config.rms_norm_epsilon = static_cast<float>(epsilon);
}

// Vocabulary, tied output and biases as the tensors have them.
absl::Status ReadTensors(const GgufFile& file,
                         const GgufArchitecture& architecture,
                         ModelConfig& config) {
  const GgufTensor* embedding = FindTensor(file, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", file.path(), "\" has no matrix token_embd.weight"));
  }
  if (embedding->shape[0] > kMaxVocabSize) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", file.path(), "\": token_embd.weight has ", embedding->shape[0],
        " rows, supported are ", kMaxVocabSize));
  }
  config.vocab_size = static_cast<int32_t>(embedding->shape[0]);
  config.tied_embeddings = FindTensor(file, "output.weight") == nullptr;
  config.qk_norm = architecture.qk_norm;
  config.qkv_bias =
      architecture.qkv_bias || FindTensor(file, "blk.0.attn_q.bias") != nullptr;
  config.output_bias = FindTensor(file, "blk.0.attn_output.bias") != nullptr;
  config.mlp_bias = FindTensor(file, "blk.0.ffn_gate.bias") != nullptr;
  return absl::OkStatus();
}

void ReadYarn(GgufFields& fields, RopeScaling& scaling) {
  scaling.beta_fast =
      fields.RealOr("rope.scaling.yarn_beta_fast", scaling.beta_fast);
  scaling.beta_slow =
      fields.RealOr("rope.scaling.yarn_beta_slow", scaling.beta_slow);
  // llama.cpp multiplies YaRN's own factor by the file's.
  scaling.attention_factor = YarnAttentionFactor(scaling.factor) *
                             fields.RealOr("rope.scaling.attn_factor", 1.0);
}

absl::Status ReadRope(const GgufFile& file, GgufFields& fields,
                      ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  config.rope_theta = fields.RealOr("rope.freq_base", config.rope_theta);
  if (!(config.rope_theta > 1.0) || !std::isfinite(config.rope_theta)) {
    fields.Fail("rope.freq_base", absl::StrCat(config.rope_theta), "above 1");
  }
  // Files from before rope.scaling have the linear factor alone.
  const double scale_linear = fields.RealOr("rope.scale_linear", 1.0);
  scaling.factor = fields.RealOr("rope.scaling.factor", scale_linear);
  // A factor alone is a linear one, as it is for llama.cpp.
  const std::string type = fields.TextOr(
      "rope.scaling.type", scaling.factor == 1.0 ? "none" : "linear");
  FARKV_RETURN_IF_ERROR(fields.status());
  if (type == "linear") {
    scaling.kind = scaling.factor == 1.0 ? Kind::kNone : Kind::kLinear;
  } else if (type == "yarn") {
    scaling.kind = Kind::kYarn;
    scaling.original_max_position =
        fields.IntOr("rope.scaling.original_context_length",
                     config.max_position, 1, kMaxPositions);
    ReadYarn(fields, scaling);
  } else if (type != "none" && !type.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("\"", file.path(), "\": rope.scaling.type is \"", type,
                     "\", supported are none, linear and yarn"));
  }
  config.max_position = scaling.MaxPosition(config.max_position);
  return fields.status();
}

// Divisors of the frequencies, which is how GGUF tells Llama 3's scaling.
absl::Status ReadDivisors(const GgufFile& file, ModelConfig& config) {
  for (const char* foreign :
       {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    if (FindTensor(file, foreign) == nullptr) continue;
    return absl::UnimplementedError(absl::StrCat(
        "\"", file.path(), "\" has tensor ", foreign, ", not supported"));
  }
  const GgufTensor* freqs = FindTensor(file, "rope_freqs.weight");
  if (freqs == nullptr) return absl::OkStatus();
  const std::vector<int64_t> wanted = {config.head_dim / 2};
  FARKV_RETURN_IF_ERROR(
      CheckShape(file.path(), "rope_freqs.weight", freqs->shape, wanted));
  if (GgufTensorType(freqs->type) != TensorType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", file.path(), "\": rope_freqs.weight is ",
                     GgufTypeName(freqs->type), ", must be F32"));
  }
  config.rope_scaling.divisors.resize(static_cast<size_t>(wanted[0]));
  std::memcpy(config.rope_scaling.divisors.data(), freqs->bytes.data(),
              freqs->bytes.size());
  return absl::OkStatus();
}

void ReadWindow(GgufFields& fields, ModelConfig& config) {
  config.sliding_window =
      fields.IntOr("attention.sliding_window", 0, 0, kMaxPositions);
  if (config.sliding_window == 0) return;
  config.max_position = std::min(config.max_position, config.sliding_window);
}

// A text may end with any of these.
absl::Status ReadTokens(const GgufFile& file, ModelConfig& config) {
  GgufFields fields(file, "tokenizer.ggml.");
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const int32_t token = fields.IntOr(key, -1, 0, config.vocab_size - 1);
    auto& ends = config.eos_tokens;
    if (token >= 0 && std::find(ends.begin(), ends.end(), token) == ends.end())
      ends.push_back(token);
  }
  FARKV_RETURN_IF_ERROR(fields.status());
  if (!GgufAddsBos(file)) return absl::OkStatus();
  config.bos_token = fields.IntOr("bos_token_id", -1, 0, config.vocab_size - 1);
  return fields.status();
}

}  // namespace

absl::StatusOr<ModelConfig> ReadGgufConfig(const GgufFile& file) {
  FARKV_ASSIGN_OR_RETURN(const GgufArchitecture* architecture,
                         FindArchitecture(file));
  const std::string prefix = absl::StrCat(architecture->gguf, ".");
  FARKV_RETURN_IF_ERROR(CheckArithmetic(file, prefix));
  ModelConfig config;
  config.architecture = architecture->hugging_face;
  GgufFields fields(file, prefix);
  ReadShape(fields, config);
  FARKV_RETURN_IF_ERROR(fields.status());
  FARKV_RETURN_IF_ERROR(ReadTensors(file, *architecture, config));
  FARKV_RETURN_IF_ERROR(ReadRope(file, fields, config));
  FARKV_RETURN_IF_ERROR(ReadDivisors(file, config));
  ReadWindow(fields, config);
  FARKV_RETURN_IF_ERROR(fields.status());
  FARKV_RETURN_IF_ERROR(ReadTokens(file, config));
  if (absl::Status status = config.Validate(); !status.ok()) {
    return Named(file, status);
  }
  return config;
}

}  // namespace farkv
