#include "gpu_worker/checkpoint/safetensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"
#include "gpu_worker/checkpoint/safetensors_header.h"

namespace farkv {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = uint64_t{100} << 20;

std::optional<TensorType> ParseType(const std::string& name) {
  for (TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBf16}) {
    if (name == TensorTypeName(type)) return type;
  }
  return std::nullopt;
}

absl::StatusOr<TensorView> ReadTensor(SafetensorsEntry entry,
                                      std::span<const std::byte> data) {
  const auto type = ParseType(entry.dtype);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype is \"", entry.dtype, "\", supported are F32, F16 and BF16"));
  }
  const uint64_t begin = entry.data_offsets[0];
  const uint64_t end = entry.data_offsets[1];
  if (begin > end || end > data.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data_offsets [", begin, ", ", end, "] do not lie in the file's ",
        data.size(), " data bytes"));
  }
  if (TensorBytes(*type, entry.shape) != end - begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeText(entry.shape), " of ", entry.dtype,
                     " does not fill ", end - begin, " bytes"));
  }
  TensorView view;
  view.type = *type;
  view.shape = std::move(entry.shape);
  view.bytes = data.subspan(begin, end - begin);
  return view;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(
    const std::string& path) {
  FARKV_ASSIGN_OR_RETURN(auto mapped, MappedFile::Open(path, kLengthBytes));
  FARKV_ASSIGN_OR_RETURN(auto file, Parse(mapped->bytes(), path));
  file->file_ = std::move(mapped);
  return file;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Parse(
    std::span<const std::byte> bytes, const std::string& path) {
  auto file = std::unique_ptr<SafetensorsFile>(new SafetensorsFile());
  file->path_ = path;
  const absl::Status status = file->Read(bytes);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\": ", status.message()));
  }
  return file;
}

absl::Status SafetensorsFile::Read(std::span<const std::byte> bytes) {
  const uint64_t header_bytes =
      bytes.size() < kLengthBytes ? 0 : LoadLe<uint64_t>(bytes.data());
  if (bytes.size() < kLengthBytes || header_bytes > kMaxHeaderBytes ||
      header_bytes > bytes.size() - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat("header of ", header_bytes,
                                                   " bytes in a file of ",
                                                   bytes.size(), " bytes"));
  }
  FARKV_ASSIGN_OR_RETURN(auto entries, ParseSafetensorsHeader(bytes.subspan(
                                           kLengthBytes, header_bytes)));
  const auto data = bytes.subspan(kLengthBytes + header_bytes);
  for (auto& [name, entry] : entries) {
    auto view = ReadTensor(std::move(entry), data);
    if (!view.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", name, ": ", view.status().message()));
    }
    tensors_.emplace(name, *std::move(view));
  }
  return CheckThatTensorsFill(data);
}

absl::Status SafetensorsFile::CheckThatTensorsFill(
    std::span<const std::byte> data) const {
  std::vector<std::pair<size_t, size_t>> spans;  // begin, end
  for (const auto& [name, view] : tensors_) {
    const auto begin = static_cast<size_t>(view.bytes.data() - data.data());
    spans.emplace_back(begin, begin + view.bytes.size());
  }
  std::sort(spans.begin(), spans.end());
  size_t filled = 0;
  for (const auto& [begin, end] : spans) {
    if (begin < filled) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensors overlap at data byte ", begin));
    }
    if (begin > filled) break;
    filled = end;
  }
  if (filled == data.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no tensor holds data byte ", filled, " of ", data.size()));
}

absl::StatusOr<TensorView> SafetensorsFile::Find(
    const std::string& name, const std::vector<int64_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return absl::NotFoundError(
        absl::StrCat("\"", path_, "\" has no tensor ", name));
  }
  FARKV_RETURN_IF_ERROR(CheckShape(path_, name, found->second.shape, shape));
  return found->second;
}

std::optional<std::string> SafetensorsFile::FindUnused(
    const std::set<std::string>& used) const {
  for (const auto& [name, view] : tensors_) {
    if (!used.contains(name)) return name;
  }
  return std::nullopt;
}

bool SafetensorsFile::Contains(const std::string& name) const {
  return tensors_.contains(name);
}

}  // namespace farkv
