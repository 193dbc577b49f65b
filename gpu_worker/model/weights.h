// The weights of a model in kernel order on a device. Owns device memory;
// read-only after Load, so thread-safe.
#ifndef FARKV_GPU_WORKER_MODEL_WEIGHTS_H_
#define FARKV_GPU_WORKER_MODEL_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
};

struct ModelWeights {
  EmbeddingTable embedding;  // [V, D]
  std::vector<LayerWeights> layers;
  DeviceBuffer final_norm;  // f32 [D]
  PackedWeight logits;      // [V, D]; a packed copy where embeddings are tied
  int64_t num_parameters = 0;

  // Reads <directory>/model.safetensors with Hugging Face names. F16 weights
  // are widened to F32. Errors name the file, the tensor and both shapes.
  static absl::StatusOr<ModelWeights> Load(const std::string& directory,
                                           const ModelConfig& config,
                                           Device& device);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_WEIGHTS_H_
