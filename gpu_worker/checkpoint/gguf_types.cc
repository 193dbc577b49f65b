#include "gpu_worker/checkpoint/gguf_types.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

// Types that ggml has numbered; a missing number was never used or withdrawn.
const char* StoredName(uint32_t stored) {
  static constexpr const char* kNames[] = {
      "F32",   "F16",   "Q4_0",    "Q4_1",   nullptr,   nullptr, "Q5_0",
      "Q5_1",  "Q8_0",  "Q8_1",    "Q2_K",   "Q3_K",    "Q4_K",  "Q5_K",
      "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
      "IQ3_S", "IQ2_S", "IQ4_XS",  "I8",     "I16",     "I32",   "I64",
      "F64",   "IQ1_M", "BF16",    nullptr,  nullptr,   nullptr, "TQ1_0",
      "TQ2_0", nullptr, nullptr,   nullptr,  "MXFP4"};
  return stored < std::size(kNames) ? kNames[stored] : nullptr;
}

}  // namespace

std::optional<std::string> GgufValueTypeName(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
      return "uint8";
    case GgufValueType::kInt8:
      return "int8";
    case GgufValueType::kUint16:
      return "uint16";
    case GgufValueType::kInt16:
      return "int16";
    case GgufValueType::kUint32:
      return "uint32";
    case GgufValueType::kInt32:
      return "int32";
    case GgufValueType::kFloat32:
      return "float32";
    case GgufValueType::kBool:
      return "bool";
    case GgufValueType::kString:
      return "string";
    case GgufValueType::kArray:
      return "array";
    case GgufValueType::kUint64:
      return "uint64";
    case GgufValueType::kInt64:
      return "int64";
    case GgufValueType::kFloat64:
      return "float64";
  }
  return std::nullopt;
}

size_t GgufNumberBytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
    case GgufValueType::kInt8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kUint16:
    case GgufValueType::kInt16:
      return 2;
    case GgufValueType::kUint32:
    case GgufValueType::kInt32:
    case GgufValueType::kFloat32:
      return 4;
    case GgufValueType::kUint64:
    case GgufValueType::kInt64:
    case GgufValueType::kFloat64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

std::string GgufValue::TypeText() const {
  const std::string name = GgufValueTypeName(type).value_or("unknown");
  return is_array ? absl::StrCat("array of ", count, " ", name) : name;
}

std::optional<TensorType> GgufTensorType(uint32_t stored) {
  switch (stored) {
    case 0:
      return TensorType::kF32;
    case 1:
      return TensorType::kF16;
    case 2:
      return TensorType::kQ4_0;
    case 3:
      return TensorType::kQ4_1;
    case 8:
      return TensorType::kQ8_0;
    case 12:
      return TensorType::kQ4_K;
    case 14:
      return TensorType::kQ6_K;
    case 30:
      return TensorType::kBf16;
    default:
      return std::nullopt;
  }
}

std::string GgufTypeName(uint32_t stored) {
  const char* name = StoredName(stored);
  return name == nullptr ? absl::StrCat("type ", stored)
                         : absl::StrCat(name, " (", stored, ")");
}

}  // namespace farkv
