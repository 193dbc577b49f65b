#include "gpu_worker/model/model_files.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/gguf_tensors.h"
#include "gpu_worker/model/gguf_config.h"
#include "gpu_worker/model/gguf_tokenizer.h"

namespace farkv {

absl::StatusOr<ModelFiles> ModelFiles::Open(const std::string& model_path) {
  FARKV_ASSIGN_OR_RETURN(const CheckpointFile checkpoint,
                         LocateCheckpoint(model_path));
  ModelFiles files;
  files.path_ = model_path;
  const auto path = std::filesystem::path(model_path).lexically_normal();
  const auto last = path.has_filename() ? path : path.parent_path();
  const bool is_file = checkpoint.path == model_path;
  files.name_ = (is_file ? last.stem() : last.filename()).string();
  if (checkpoint.format == CheckpointFormat::kGguf) {
    FARKV_ASSIGN_OR_RETURN(files.gguf_, GgufFile::Open(checkpoint.path));
  }
  return files;
}

absl::StatusOr<ModelConfig> ModelFiles::ReadConfig() const {
  if (gguf_ != nullptr) return ReadGgufConfig(*gguf_);
  return ModelConfig::Load(absl::StrCat(path_, "/config.json"));
}

absl::StatusOr<Tokenizer> ModelFiles::ReadTokenizer() const {
  if (gguf_ == nullptr) {
    auto read = Tokenizer::Load(absl::StrCat(path_, "/tokenizer.json"));
    if (!absl::IsNotFound(read.status())) return read;
    auto older = Tokenizer::Load(absl::StrCat(path_, "/tokenizer.model"));
    if (!absl::IsNotFound(older.status())) return older;
    return absl::NotFoundError(absl::StrCat(
        "\"", path_, "\" has neither tokenizer.json nor tokenizer.model"));
  }
  FARKV_ASSIGN_OR_RETURN(TokenizerSpec spec, ReadGgufTokenizer(*gguf_));
  auto tokenizer = Tokenizer::Create(std::move(spec));
  if (tokenizer.ok()) return tokenizer;
  return absl::Status(
      tokenizer.status().code(),
      absl::StrCat("\"", gguf_->path(), "\": ", tokenizer.status().message()));
}

absl::StatusOr<std::unique_ptr<TensorSource>> ModelFiles::OpenTensorSource()
    const {
  if (gguf_ != nullptr) return GgufTensors::Create(gguf_);
  return OpenTensors(path_);
}

}  // namespace farkv
