#include "gpu_worker/checkpoint/gguf_file.h"

#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/endian.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

// Nothing when `type` is no integer, or the value is above int64_t's.
std::optional<int64_t> LoadInteger(GgufValueType type, const std::byte* from) {
  switch (type) {
    case GgufValueType::kUint8:
      return LoadLe<uint8_t>(from);
    case GgufValueType::kInt8:
      return LoadLe<int8_t>(from);
    case GgufValueType::kUint16:
      return LoadLe<uint16_t>(from);
    case GgufValueType::kInt16:
      return LoadLe<int16_t>(from);
    case GgufValueType::kUint32:
      return LoadLe<uint32_t>(from);
    case GgufValueType::kInt32:
      return LoadLe<int32_t>(from);
    case GgufValueType::kInt64:
      return LoadLe<int64_t>(from);
    case GgufValueType::kUint64: {
      const auto value = LoadLe<uint64_t>(from);
      if (value > uint64_t{std::numeric_limits<int64_t>::max()}) break;
      return static_cast<int64_t>(value);
    }
    default:
      break;
  }
  return std::nullopt;
}

std::optional<double> LoadReal(GgufValueType type, const std::byte* from) {
  if (type == GgufValueType::kFloat32) {
    return double{std::bit_cast<float>(LoadLe<uint32_t>(from))};
  }
  if (type == GgufValueType::kFloat64) {
    return std::bit_cast<double>(LoadLe<uint64_t>(from));
  }
  return std::nullopt;
}

std::string_view LoadString(const std::byte* from) {
  return {reinterpret_cast<const char*>(from + 8), LoadLe<uint64_t>(from)};
}

// All elements by `load`, or nothing as soon as it gives nothing.
template <typename T, typename Load>
std::optional<std::vector<T>> LoadAll(const GgufValue& value, Load load) {
  const size_t stride = GgufNumberBytes(value.type);
  std::vector<T> loaded;
  if (stride == 0) return std::nullopt;
  loaded.reserve(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    const auto element = load(value.type, value.bytes.data() + i * stride);
    if (!element.has_value()) return std::nullopt;
    loaded.push_back(*element);
  }
  return loaded;
}

}  // namespace

absl::StatusOr<const GgufValue*> GgufFile::Scalar(
    const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    return absl::NotFoundError(
        absl::StrCat("\"", path_, "\" has no key ", key));
  }
  if (found->second.is_array) return WrongType(key, found->second, "one value");
  return &found->second;
}

absl::StatusOr<const GgufValue*> GgufFile::Array(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    return absl::NotFoundError(
        absl::StrCat("\"", path_, "\" has no key ", key));
  }
  if (!found->second.is_array) return WrongType(key, found->second, "an array");
  return &found->second;
}

absl::Status GgufFile::WrongType(const std::string& key, const GgufValue& value,
                                 const char* wanted) const {
  return absl::InvalidArgumentError(absl::StrCat("\"", path_, "\": key ", key,
                                                 " is ", value.TypeText(),
                                                 ", must be ", wanted));
}

absl::StatusOr<std::string_view> GgufFile::String(
    const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  if (value->type != GgufValueType::kString) {
    return WrongType(key, *value, "string");
  }
  return LoadString(value->bytes.data());
}

absl::StatusOr<int64_t> GgufFile::Integer(const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  const auto loaded = LoadInteger(value->type, value->bytes.data());
  if (!loaded.has_value()) {
    return WrongType(key, *value, "an integer below 2^63");
  }
  return *loaded;
}

absl::StatusOr<double> GgufFile::Real(const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  const auto loaded = LoadReal(value->type, value->bytes.data());
  if (!loaded.has_value()) return WrongType(key, *value, "float32 or float64");
  return *loaded;
}

absl::StatusOr<bool> GgufFile::Bool(const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  if (value->type != GgufValueType::kBool) {
    return WrongType(key, *value, "bool");
  }
  return LoadLe<uint8_t>(value->bytes.data()) != 0;
}

absl::StatusOr<std::vector<std::string_view>> GgufFile::Strings(
    const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Array(key));
  if (value->type != GgufValueType::kString) {
    return WrongType(key, *value, "an array of string");
  }
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  const std::byte* at = value->bytes.data();
  for (uint64_t i = 0; i < value->count; ++i) {
    strings.push_back(LoadString(at));
    at += 8 + strings.back().size();
  }
  return strings;
}

absl::StatusOr<std::vector<int64_t>> GgufFile::Integers(
    const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Array(key));
  auto loaded = LoadAll<int64_t>(*value, LoadInteger);
  if (!loaded.has_value()) {
    return WrongType(key, *value, "an array of integers below 2^63");
  }
  return *std::move(loaded);
}

absl::StatusOr<std::vector<double>> GgufFile::Reals(
    const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Array(key));
  auto loaded = LoadAll<double>(*value, LoadReal);
  if (!loaded.has_value()) {
    return WrongType(key, *value, "an array of float32 or float64");
  }
  return *std::move(loaded);
}

absl::StatusOr<std::vector<bool>> GgufFile::Bools(
    const std::string& key) const {
  FARKV_ASSIGN_OR_RETURN(const GgufValue* value, Array(key));
  if (value->type != GgufValueType::kBool) {
    return WrongType(key, *value, "an array of bool");
  }
  std::vector<bool> loaded;
  loaded.reserve(value->count);
  for (const std::byte element : value->bytes) {
    loaded.push_back(element != std::byte{0});
  }
  return loaded;
}

}  // namespace farkv
