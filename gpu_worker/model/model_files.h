// What --model names, located once and read part by part: a directory as
// Hugging Face lays it out (config.json, tokenizer.json, safetensors) or a
// GGUF file, which holds all three, or a directory with one.
// Thread-safe after Open.
#ifndef FARKV_GPU_WORKER_MODEL_MODEL_FILES_H_
#define FARKV_GPU_WORKER_MODEL_MODEL_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gpu_worker/checkpoint/gguf_file.h"
#include "gpu_worker/checkpoint/tensor_source.h"
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

class ModelFiles {
 public:
  // NOT_FOUND when nothing of a model is at `model_path`; for a GGUF file the
  // errors of GgufFile::Open.
  static absl::StatusOr<ModelFiles> Open(const std::string& model_path);

  // The last part of the path, without ".gguf".
  const std::string& name() const { return name_; }
  // Errors of each part name its file.
  absl::StatusOr<ModelConfig> ReadConfig() const;
  absl::StatusOr<Tokenizer> ReadTokenizer() const;
  absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensorSource() const;

 private:
  ModelFiles() = default;

  std::string path_;
  std::string name_;
  std::shared_ptr<const GgufFile> gguf_;  // null for a directory of parts
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_MODEL_MODEL_FILES_H_
