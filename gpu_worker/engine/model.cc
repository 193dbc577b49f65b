#include "gpu_worker/engine/model.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {

absl::StatusOr<Model> Model::Load(const std::string& directory,
                                  Device& device) {
  Model model;
  const auto path = std::filesystem::path(directory).lexically_normal();
  model.name =
      (path.has_filename() ? path : path.parent_path()).filename().string();
  FARKV_ASSIGN_OR_RETURN(
      model.config, ModelConfig::Load(absl::StrCat(directory, "/config.json")));
  FARKV_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::Load(absl::StrCat(
                                              directory, "/tokenizer.json")));
  if (model.tokenizer.vocab_size() > model.config.vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", directory, "\": tokenizer.json has ids up to ",
        model.tokenizer.vocab_size() - 1, ", config.json a vocab_size of ",
        model.config.vocab_size));
  }
  for (int32_t token : model.config.eos_tokens) {
    if (token >= 0 && token < model.config.vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", directory, "\": config.json has eos_token_id ",
                     token, " and vocab_size ", model.config.vocab_size));
  }
  FARKV_ASSIGN_OR_RETURN(model.weights,
                         ModelWeights::Load(directory, model.config, device));
  return model;
}

}  // namespace farkv
