// The shape of a decoder-only transformer of the Llama family, from the
// Hugging Face config.json: Llama 2 and 3, Mistral, Qwen2, Qwen3 and what is
// shaped like them (R1-Distill, SmolLM2). Plain values.
#ifndef FARKV_GPU_WORKER_MODEL_MODEL_CONFIG_H_
#define FARKV_GPU_WORKER_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/model/rope.h"

namespace farkv {

struct ModelConfig {
  std::string architecture;  // as in config.json, "Qwen3ForCausalLM"
  int32_t hidden_size = 0;
  int32_t intermediate_size = 0;
  int32_t num_layers = 0;
  int32_t num_query_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t vocab_size = 0;
  // Tokens of a sequence: what RoPE with its scaling reaches, but at most the
  // sliding window where layers have one, because within it full attention,
  // which is all we have, is the same.
  int32_t max_position = 0;
  int32_t sliding_window = 0;  // 0: none
  float rms_norm_epsilon = 1e-6f;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool tied_embeddings = false;
  bool qk_norm = false;      // Qwen3: RMSNorm of each query and key head
  bool qkv_bias = false;     // Qwen2; others with attention_bias
  bool output_bias = false;  // of o_proj; Llama, Qwen3 with attention_bias
  bool mlp_bias = false;     // Llama with mlp_bias
  int32_t bos_token = -1;    // -1: none
  std::vector<int32_t> eos_tokens;

  // NOT_FOUND for a missing file; INVALID_ARGUMENT naming the field and value;
  // UNIMPLEMENTED for an architecture, activation, quantisation or RoPE
  // scaling that we do not have. The result is valid.
  // A generation_config.json beside it may name more end tokens.
  static absl::StatusOr<ModelConfig> Load(const std::string& path);
  // The same for the text of a config.json.
  static absl::StatusOr<ModelConfig> Parse(absl::string_view text);
  // Adds the end tokens that a generation_config.json names.
  absl::Status AddGenerationConfig(absl::string_view text);

  // INVALID_ARGUMENT naming the fields and values that do not fit together.
  absl::Status Validate() const;

  KvGeometry Geometry(DType dtype) const {
    return {num_layers, num_kv_heads, head_dim, dtype};
  }
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_MODEL_CONFIG_H_
