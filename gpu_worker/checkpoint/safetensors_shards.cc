#include "gpu_worker/checkpoint/safetensors_shards.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/json_walk.h"
#include "gpu_worker/checkpoint/mapped_file.h"

namespace farkv {
namespace {

constexpr size_t kMaxIndexBytes = size_t{100} << 20;

// A name in the index's own folder, nothing that leads out of it.
bool IsPlainFileName(const std::string& name) {
  return absl::EndsWith(name, ".safetensors") &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

absl::Status AddPlace(const JsonPiece& piece,
                      std::map<std::string, std::string>& weight_map) {
  const std::string& tensor = piece.path[1];
  if (piece.kind != JsonKind::kString) {
    return absl::InvalidArgumentError(
        absl::StrCat("weight_map: the place of ", tensor, " is not a string"));
  }
  if (!IsPlainFileName(*piece.text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weight_map: ", tensor, " is in \"", *piece.text,
        "\", which is not a .safetensors file name without a folder"));
  }
  if (!weight_map.emplace(tensor, *piece.text).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("weight_map: ", tensor, " is named twice"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(
    std::span<const std::byte> text) {
  std::map<std::string, std::string> weight_map;
  FARKV_RETURN_IF_ERROR(WalkJson(text, [&](const JsonPiece& piece) {
    if (piece.path.empty()) {
      return piece.kind == JsonKind::kObject
                 ? absl::OkStatus()
                 : absl::InvalidArgumentError("not a JSON object");
    }
    if (piece.path[0] != "weight_map") return absl::OkStatus();
    if (piece.path.size() == 1) {
      return piece.kind == JsonKind::kObject
                 ? absl::OkStatus()
                 : absl::InvalidArgumentError("weight_map is not an object");
    }
    return AddPlace(piece, weight_map);
  }));
  if (weight_map.empty()) {
    return absl::InvalidArgumentError("has no tensors in weight_map");
  }
  return weight_map;
}

absl::StatusOr<std::unique_ptr<SafetensorsShards>> SafetensorsShards::Open(
    const std::string& index_path) {
  FARKV_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(index_path, 2));
  if (mapped->bytes().size() > kMaxIndexBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", index_path, "\" has ", mapped->bytes().size(),
                     " bytes, an index has ", kMaxIndexBytes, " at most"));
  }
  auto weight_map = ParseSafetensorsIndex(mapped->bytes());
  if (!weight_map.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", index_path, "\": ", weight_map.status().message()));
  }
  auto source = std::unique_ptr<SafetensorsShards>(new SafetensorsShards());
  source->path_ = index_path;
  source->weight_map_ = *std::move(weight_map);
  const auto folder = std::filesystem::path(index_path).parent_path();
  for (const auto& [tensor, name] : source->weight_map_) {
    auto& shard = source->shards_[name];
    if (shard != nullptr) continue;
    FARKV_ASSIGN_OR_RETURN(shard,
                           SafetensorsFile::Open((folder / name).string()));
  }
  FARKV_RETURN_IF_ERROR(source->CheckAgreement());
  return source;
}

absl::Status SafetensorsShards::CheckAgreement() const {
  for (const auto& [tensor, name] : weight_map_) {
    if (shards_.at(name)->Contains(tensor)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path_, "\" places tensor ", tensor, " in ", name,
                     ", which does not have it"));
  }
  for (const auto& [name, shard] : shards_) {
    for (const auto& [tensor, view] : shard->tensors()) {
      const auto found = weight_map_.find(tensor);
      if (found != weight_map_.end() && found->second == name) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", shard->path(), "\" has tensor ", tensor, ", the index places ",
          found == weight_map_.end() ? "it nowhere"
                                     : "it in " + found->second));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorView> SafetensorsShards::Find(
    const std::string& name, const std::vector<int64_t>& shape) const {
  const auto found = weight_map_.find(name);
  if (found == weight_map_.end()) {
    return absl::NotFoundError(
        absl::StrCat("\"", path_, "\" has no tensor ", name));
  }
  return shards_.at(found->second)->Find(name, shape);
}

std::optional<std::string> SafetensorsShards::FindUnused(
    const std::set<std::string>& used) const {
  for (const auto& [name, shard] : weight_map_) {
    if (!used.contains(name)) return name;
  }
  return std::nullopt;
}

}  // namespace farkv
