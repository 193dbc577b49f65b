#include "gpu_worker/engine/model.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/telemetry/log.h"
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

// At the start, so that nobody has to chat to learn that it cannot be.
void LogChat(const Model& model) {
  if (!model.chat.ok()) {
    spdlog::info("model {}: no chat: {}", model.name,
                 std::string(model.chat.status().message()));
    return;
  }
  const std::string& system = model.chat->default_system();
  spdlog::info("model {}: chat template {}, {}", model.name, model.chat->name(),
               system.empty() ? std::string("no default system message")
                              : absl::StrCat("default system message \"",
                                             absl::CHexEscape(system), "\""));
}

}  // namespace

absl::StatusOr<ChatTemplate> Model::FindChat(const Tokenizer& tokenizer) {
  if (!tokenizer.chat_template()) {
    return absl::FailedPreconditionError("the model has no chat template");
  }
  return ChatTemplate::Recognise(
      *tokenizer.chat_template(),
      {tokenizer.Spelling(tokenizer.bos_token().value_or(-1)),
       tokenizer.Spelling(tokenizer.eos_token().value_or(-1))});
}

absl::StatusOr<Model> Model::Load(const std::string& path, Device& device) {
  FARKV_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(path));
  Model model;
  model.name = files.name();
  FARKV_ASSIGN_OR_RETURN(model.config, files.ReadConfig());
  FARKV_ASSIGN_OR_RETURN(model.tokenizer, files.ReadTokenizer());
  FARKV_RETURN_IF_ERROR(CheckTokens(path, model));
  model.chat = FindChat(model.tokenizer);
  LogChat(model);
  model.thoughts = FindThoughtMarks(model.tokenizer);
  FARKV_ASSIGN_OR_RETURN(const auto tensors, files.OpenTensorSource());
  FARKV_ASSIGN_OR_RETURN(model.weights,
                         ModelWeights::Load(*tensors, model.config, device));
  return model;
}

}  // namespace farkv
