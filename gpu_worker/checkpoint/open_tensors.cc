#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/gguf_file.h"
#include "gpu_worker/checkpoint/gguf_tensors.h"
#include "gpu_worker/checkpoint/safetensors.h"
#include "gpu_worker/checkpoint/safetensors_shards.h"
#include "gpu_worker/checkpoint/tensor_source.h"

namespace farkv {
namespace {

namespace fs = std::filesystem;

constexpr char kOneFile[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kGgufEnding[] = ".gguf";
constexpr char kPickled[] = "pytorch_model.bin";

// The only .gguf of a folder.
absl::StatusOr<std::string> OnlyGguf(const fs::path& folder) {
  std::string only;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != kGgufEnding) continue;
    if (!only.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", folder.string(), "\" has several .gguf files, ", only, " and ",
          it->path().filename().string(), " among them; name one of them"));
    }
    only = it->path().filename().string();
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot list \"", folder.string(),
                                            "\": ", error.message()));
  }
  if (only.empty()) {
    const std::string other = fs::exists(folder / kPickled, error)
                                  ? absl::StrCat("; ", kPickled, " is not read")
                                  : "";
    return absl::NotFoundError(
        absl::StrCat("\"", folder.string(), "\" has none of ", kOneFile, ", ",
                     kIndex, " and *", kGgufEnding, other));
  }
  return (folder / only).string();
}

}  // namespace

absl::StatusOr<CheckpointFile> LocateCheckpoint(const std::string& model_path) {
  const fs::path path(model_path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return absl::NotFoundError(
        absl::StrCat("there is no model at \"", model_path,
                     "\", which must be a folder or a ", kGgufEnding,
                     " file; no model is fetched by its name"));
  }
  if (!fs::is_directory(status)) {
    if (path.extension() == kGgufEnding) {
      return CheckpointFile{CheckpointFormat::kGguf, model_path};
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", model_path, "\" is neither a directory nor a ",
                     kGgufEnding, " file"));
  }
  if (fs::exists(path / kOneFile, error)) {
    return CheckpointFile{CheckpointFormat::kSafetensors,
                          (path / kOneFile).string()};
  }
  if (fs::exists(path / kIndex, error)) {
    return CheckpointFile{CheckpointFormat::kSafetensorsIndex,
                          (path / kIndex).string()};
  }
  FARKV_ASSIGN_OR_RETURN(std::string gguf, OnlyGguf(path));
  return CheckpointFile{CheckpointFormat::kGguf, std::move(gguf)};
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenTensors(
    const std::string& model_path) {
  FARKV_ASSIGN_OR_RETURN(const CheckpointFile file,
                         LocateCheckpoint(model_path));
  switch (file.format) {
    case CheckpointFormat::kSafetensors:
      return SafetensorsFile::Open(file.path);
    case CheckpointFormat::kSafetensorsIndex:
      return SafetensorsShards::Open(file.path);
    case CheckpointFormat::kGguf:
      break;
  }
  FARKV_ASSIGN_OR_RETURN(auto gguf, GgufFile::Open(file.path));
  return GgufTensors::Create(std::move(gguf));
}

}  // namespace farkv
