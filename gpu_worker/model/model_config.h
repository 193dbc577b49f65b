// The shape of a decoder-only transformer of the Llama family, from the
// Hugging Face config.json: Llama and Qwen3 architectures. Plain values.
#ifndef FARKV_GPU_WORKER_MODEL_MODEL_CONFIG_H_
#define FARKV_GPU_WORKER_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/kv_geometry.h"

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
  int32_t max_position = 0;  // tokens of a sequence
  float rms_norm_epsilon = 1e-6f;
  double rope_theta = 10000.0;
  bool tied_embeddings = false;
  bool qk_norm = false;    // Qwen3: RMSNorm of each query and key head
  int32_t bos_token = -1;  // -1: none
  std::vector<int32_t> eos_tokens;

  // NOT_FOUND for a missing file; INVALID_ARGUMENT naming the field and value;
  // UNIMPLEMENTED for an architecture, bias or RoPE scaling we do not have.
  static absl::StatusOr<ModelConfig> Load(const std::string& path);

  KvGeometry Geometry(DType dtype) const {
    return {num_layers, num_kv_heads, head_dim, dtype};
  }
  // Radians per position of each pair of a head, [head_dim / 2].
  std::vector<double> RopeFrequencies() const;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_MODEL_CONFIG_H_
