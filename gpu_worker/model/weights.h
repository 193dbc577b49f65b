// The weights of a model in kernel order on a device. Owns device memory;
// read-only after Load, so thread-safe.
#ifndef FARKV_GPU_WORKER_MODEL_WEIGHTS_H_
#define FARKV_GPU_WORKER_MODEL_WEIGHTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/tensor_source.h"
#include "gpu_worker/model/model_config.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/stream.h"

namespace farkv {

// Shapes: D hidden, F intermediate, Hq/Hkv heads, d head_dim, V vocabulary.
struct LayerWeights {
  DeviceBuffer input_norm;      // f32 [D]
  DeviceBuffer post_norm;       // f32 [D]
  DeviceBuffer query_norm;      // f32 [d], only with qk_norm
  DeviceBuffer key_norm;        // f32 [d], only with qk_norm
  PackedWeight query;           // [Hq*d, D]
  PackedWeight key, value;      // [Hkv*d, D]
  PackedWeight output;          // [D, Hq*d]
  PackedWeight gate, up, down;  // [F, D], [F, D], [D, F]
  // f32, one number per output; empty where the model has none.
  DeviceBuffer query_bias, key_bias, value_bias, output_bias;
  DeviceBuffer gate_bias, up_bias, down_bias;
};

struct ModelWeights {
  EmbeddingTable embedding;  // [V, D]
  std::vector<LayerWeights> layers;
  DeviceBuffer final_norm;  // f32 [D]
  PackedWeight logits;      // [V, D]; a packed copy where embeddings are tied
  int64_t num_parameters = 0;

  // Matrices and embeddings keep their stored type, but F16 is widened to F32.
  // Errors name the file, the tensor and both shapes; a tensor that `config`
  // has no use for (a further layer, a bias, a norm, an unknown name) is
  // INVALID_ARGUMENT.
  static absl::StatusOr<ModelWeights> Load(const TensorSource& tensors,
                                           const ModelConfig& config,
                                           Device& device);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_WEIGHTS_H_
