#include "gpu_worker/engine/model.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/model/model_files.h"

namespace farkv {
namespace {

absl::Status CheckTokens(const std::string& path, const Model& model) {
  const int32_t vocab_size = model.config.vocab_size;
  if (model.tokenizer.vocab_size() > vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\": the tokenizer has ids up to ",
                     model.tokenizer.vocab_size() - 1,
                     ", the model a vocab_size of ", vocab_size));
  }
  for (int32_t token : model.config.eos_tokens) {
    if (token >= 0 && token < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\": the config has eos_token_id ", token,
                     " and vocab_size ", vocab_size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> Model::Load(const std::string& path, Device& device) {
  FARKV_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(path));
  Model model;
  model.name = files.name();
  FARKV_ASSIGN_OR_RETURN(model.config, files.ReadConfig());
  FARKV_ASSIGN_OR_RETURN(model.tokenizer, files.ReadTokenizer());
  FARKV_RETURN_IF_ERROR(CheckTokens(path, model));
  FARKV_ASSIGN_OR_RETURN(const auto tensors, files.OpenTensorSource());
  FARKV_ASSIGN_OR_RETURN(model.weights,
                         ModelWeights::Load(*tensors, model.config, device));
  return model;
}

}  // namespace farkv
