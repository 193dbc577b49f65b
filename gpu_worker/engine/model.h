// Everything of a model that the engine needs, loaded once.
// Read-only after Load.
#ifndef FARKV_GPU_WORKER_ENGINE_MODEL_H_
#define FARKV_GPU_WORKER_ENGINE_MODEL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "gpu_worker/engine/thoughts.h"
#include "gpu_worker/model/model_config.h"
#include "gpu_worker/model/weights.h"
#include "gpu_worker/tokenizer/chat_template.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {

struct Model {
  std::string name;  // last part of the path, without ".gguf"
  ModelConfig config;
  Tokenizer tokenizer;
  // Of the tokenizer's template, or why the model cannot chat.
  absl::StatusOr<ChatTemplate> chat = FindChat(Tokenizer());
  std::optional<ThoughtMarks> thoughts;
  ModelWeights weights;

  // From a directory or a .gguf file (ModelFiles). Errors name the file and
  // what was wrong with it.
  static absl::StatusOr<Model> Load(const std::string& path, Device& device);

  // FAILED_PRECONDITION without a template, else ChatTemplate::Recognise.
  static absl::StatusOr<ChatTemplate> FindChat(const Tokenizer& tokenizer);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_MODEL_H_
