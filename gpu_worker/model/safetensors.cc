#include "gpu_worker/model/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = uint64_t{100} << 20;

std::optional<TensorType> ParseType(const std::string& name) {
  if (name == "F32") return TensorType::kF32;
  if (name == "F16") return TensorType::kF16;
  if (name == "BF16") return TensorType::kBf16;
  return std::nullopt;
}

size_t ElementBytes(TensorType type) {
  return type == TensorType::kF32 ? 4 : 2;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Product of the shape, or nothing when it is negative or overflows.
std::optional<int64_t> CountElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      return std::nullopt;
    }
  }
  return count;
}

absl::StatusOr<std::pair<uint64_t, uint64_t>> ReadOffsets(const json& entry,
                                                          uint64_t data_bytes) {
  const json& offsets = entry.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return absl::InvalidArgumentError("data_offsets must be two whole numbers");
  }
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  if (begin > end || end > data_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets [", begin, ", ", end,
                     "] do not lie in the file's ", data_bytes, " data bytes"));
  }
  return std::make_pair(begin, end);
}

absl::StatusOr<TensorView> ReadTensor(const json& entry,
                                      std::span<const std::byte> data) {
  if (!entry.is_object() || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets") ||
      !entry["dtype"].is_string() || !entry["shape"].is_array()) {
    return absl::InvalidArgumentError("needs dtype, shape and data_offsets");
  }
  TensorView view;
  const auto dtype = entry["dtype"].get<std::string>();
  const auto type = ParseType(dtype);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype is \"", dtype, "\", supported are F32, F16 and BF16"));
  }
  view.type = *type;
  for (const json& extent : entry["shape"]) {
    if (!extent.is_number_integer()) {
      return absl::InvalidArgumentError("shape must hold whole numbers");
    }
    view.shape.push_back(extent.get<int64_t>());
  }
  FARKV_ASSIGN_OR_RETURN(const auto offsets, ReadOffsets(entry, data.size()));
  const uint64_t bytes = offsets.second - offsets.first;
  const auto count = CountElements(view.shape);
  if (!count.has_value() ||
      static_cast<uint64_t>(*count) != bytes / ElementBytes(view.type) ||
      bytes % ElementBytes(view.type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", ShapeText(view.shape), " of ", dtype,
                     " does not fill ", bytes, " bytes"));
  }
  view.bytes = data.subspan(offsets.first, bytes);
  return view;
}

}  // namespace

const char* TensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return "F32";
    case TensorType::kF16:
      return "F16";
    case TensorType::kBf16:
      return "BF16";
  }
  return "unknown";
}

int64_t TensorView::NumElements() const {
  return CountElements(shape).value_or(0);
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(
    const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(absl::StrCat("cannot open \"", path, "\""));
  }
  struct stat info {};
  void* mapped = MAP_FAILED;
  if (fstat(fd, &info) == 0 && info.st_size >= 8) {
    mapped = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ,
                  MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (mapped == MAP_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" has ", info.st_size,
                     " bytes or cannot be mapped; not a safetensors file"));
  }
  auto file = std::unique_ptr<SafetensorsFile>(new SafetensorsFile());
  file->path_ = path;
  file->file_ = {static_cast<const std::byte*>(mapped),
                 static_cast<size_t>(info.st_size)};
  FARKV_RETURN_IF_ERROR(file->ReadHeader());
  return file;
}

absl::Status SafetensorsFile::ReadHeader() {
  const auto header_bytes = LoadLe<uint64_t>(file_.data());
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_.size() - 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path_, "\": header of ", header_bytes,
                     " bytes in a file of ", file_.size(), " bytes"));
  }
  const auto* text = reinterpret_cast<const char*>(file_.data() + 8);
  const json header = json::parse(text, text + header_bytes, nullptr, false);
  if (!header.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path_, "\": the header is not a JSON object"));
  }
  const auto data = file_.subspan(8 + header_bytes);
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    auto view = ReadTensor(entry, data);
    if (!view.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", path_, "\": tensor ", name, ": ", view.status().message()));
    }
    spans.emplace_back(view->bytes.data(),
                       view->bytes.data() + view->bytes.size());
    tensors_.emplace(name, *std::move(view));
  }
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first < spans[i - 1].second) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", path_, "\": tensors overlap at data byte ",
                       spans[i].first - data.data()));
    }
  }
  return absl::OkStatus();
}

SafetensorsFile::~SafetensorsFile() {
  if (!file_.empty()) {
    munmap(const_cast<std::byte*>(file_.data()), file_.size());
  }
}

absl::StatusOr<TensorView> SafetensorsFile::Find(
    const std::string& name, const std::vector<int64_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return absl::NotFoundError(
        absl::StrCat("\"", path_, "\" has no tensor ", name));
  }
  if (found->second.shape != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path_, "\": tensor ", name, " has shape ",
                     ShapeText(found->second.shape), ", config.json asks for ",
                     ShapeText(shape)));
  }
  return found->second;
}

bool SafetensorsFile::Contains(const std::string& name) const {
  return tensors_.contains(name);
}

}  // namespace farkv
