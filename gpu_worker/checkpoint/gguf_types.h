// The types of GGUF's metadata values and tensors, with their numbers in the
// file. Pure.
#ifndef FARKV_GPU_WORKER_CHECKPOINT_GGUF_TYPES_H_
#define FARKV_GPU_WORKER_CHECKPOINT_GGUF_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gpu_worker/checkpoint/tensor_source.h"

namespace farkv {

enum class GgufValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "uint32", "string"; nothing for a number that is no type.
std::optional<std::string> GgufValueTypeName(GgufValueType type);
// Bytes of a number or bool; 0 for strings, arrays and unknown types.
size_t GgufNumberBytes(GgufValueType type);

// A metadata value where it lies in the file, its extent checked. A string is
// its length in 8 bytes and then its characters.
struct GgufValue {
  GgufValueType type = GgufValueType::kUint8;  // an array's: of its elements
  bool is_array = false;
  uint64_t count = 1;  // elements of an array
  std::span<const std::byte> bytes;

  std::string TypeText() const;  // "array of 3 string"
};

// The type of a tensor that a GGUF file gives as `stored`; nothing when we
// have none for it.
std::optional<TensorType> GgufTensorType(uint32_t stored);
// "Q5_0 (6)"; "type 99" for a number without a name.
std::string GgufTypeName(uint32_t stored);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_CHECKPOINT_GGUF_TYPES_H_
