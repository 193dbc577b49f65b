// Everything of a model that the engine needs, loaded once.
// Read-only after Load.
#ifndef FARKV_GPU_WORKER_ENGINE_MODEL_H_
#define FARKV_GPU_WORKER_ENGINE_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/model/weights.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

struct Model {
  std::string name;  // last part of the path, without ".gguf"
  ModelConfig config;
  Tokenizer tokenizer;
  ModelWeights weights;

  // From a directory or a .gguf file (ModelFiles). Errors name the file and
  // what was wrong with it.
  static absl::StatusOr<Model> Load(const std::string& path, Device& device);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_MODEL_H_
