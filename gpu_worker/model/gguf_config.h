// The shape of a model from a GGUF file's metadata and tensors, as ModelConfig
// has it from config.json. Pure.
#ifndef FARKV_GPU_WORKER_MODEL_GGUF_CONFIG_H_
#define FARKV_GPU_WORKER_MODEL_GGUF_CONFIG_H_

#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/gguf_file.h"
#include "gpu_worker/model/model_config.h"

namespace farkv {

// Architectures llama (Mistral and SmolLM2 too), qwen2 and qwen3. A model
// without output.weight has tied embeddings. bos_token is set only where the
// file wants texts to begin with it.
//
// NOT_FOUND for a missing key; INVALID_ARGUMENT naming the key and value;
// UNIMPLEMENTED for an architecture, RoPE scaling or a key that changes the
// arithmetic in a way that we do not have. The result is valid.
absl::StatusOr<ModelConfig> ReadGgufConfig(const GgufFile& file);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_GGUF_CONFIG_H_
