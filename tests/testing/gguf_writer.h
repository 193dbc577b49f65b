// Writes GGUF files, well-formed ones by default, for tests. What a test wants
// wrong it sets, or patches in the bytes. Little endian. Test only.
#ifndef FARKV_TESTS_TESTING_GGUF_WRITER_H_
#define FARKV_TESTS_TESTING_GGUF_WRITER_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu_worker/checkpoint/gguf_types.h"

namespace farkv::testing {

// The bytes of a number as they lie in a file.
template <typename T>
std::string RawBytes(T value) {
  static_assert(std::is_arithmetic_v<T>);
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

class GgufWriter {
 public:
  // Header fields; the counts are those of what was added unless set.
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> num_tensors;
  std::optional<uint64_t> num_values;
  uint64_t alignment = 32;  // of the data; not written as a key

  template <typename T>
  void Add(const std::string& key, T value) {
    AddRaw(key, static_cast<uint32_t>(TypeOf<T>()), RawBytes(value));
  }
  void Add(const std::string& key, const std::string& text) {
    AddRaw(key, static_cast<uint32_t>(GgufValueType::kString), Text(text));
  }
  void Add(const std::string& key, const char* text) {
    Add(key, std::string(text));
  }
  template <typename T>
  void AddArray(const std::string& key, const std::vector<T>& elements) {
    std::string bytes;
    GgufValueType type = GgufValueType::kString;
    if constexpr (std::is_same_v<T, std::string>) {
      for (const std::string& element : elements) bytes += Text(element);
    } else {
      type = TypeOf<T>();
      for (const T element : elements) bytes += RawBytes(element);
    }
    AddRaw(key, static_cast<uint32_t>(GgufValueType::kArray),
           RawBytes(static_cast<uint32_t>(type)) +
               RawBytes(uint64_t{elements.size()}) + bytes);
  }
  // A value of any type and bytes, also wrong ones.
  void AddRaw(const std::string& key, uint32_t type, const std::string& bytes) {
    values_ += Text(key) + RawBytes(type) + bytes;
    ++values_added_;
  }

  // `shape` is row-major. The data goes behind the tensors before it, or to
  // `offset` in the infos only.
  void AddTensor(const std::string& name, const std::vector<int64_t>& shape,
                 uint32_t type, const std::string& bytes,
                 std::optional<uint64_t> offset = std::nullopt) {
    Pad(data_, alignment);
    infos_ += Text(name) + RawBytes(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i > 0; --i) infos_ += RawBytes(shape[i - 1]);
    infos_ += RawBytes(type) + RawBytes(offset.value_or(data_.size()));
    data_ += bytes;
    ++tensors_added_;
  }

  std::string Bytes() const {
    std::string file = magic + RawBytes(version) +
                       RawBytes(num_tensors.value_or(tensors_added_)) +
                       RawBytes(num_values.value_or(values_added_)) + values_ +
                       infos_;
    if (tensors_added_ > 0) Pad(file, alignment);
    return file + data_;
  }

 private:
  template <typename T>
  static constexpr GgufValueType TypeOf() {
    if constexpr (std::is_same_v<T, bool>) return GgufValueType::kBool;
    if constexpr (std::is_same_v<T, float>) return GgufValueType::kFloat32;
    if constexpr (std::is_same_v<T, double>) return GgufValueType::kFloat64;
    if constexpr (std::is_same_v<T, uint8_t>) return GgufValueType::kUint8;
    if constexpr (std::is_same_v<T, int8_t>) return GgufValueType::kInt8;
    if constexpr (std::is_same_v<T, uint16_t>) return GgufValueType::kUint16;
    if constexpr (std::is_same_v<T, int16_t>) return GgufValueType::kInt16;
    if constexpr (std::is_same_v<T, uint32_t>) return GgufValueType::kUint32;
    if constexpr (std::is_same_v<T, int32_t>) return GgufValueType::kInt32;
    if constexpr (std::is_same_v<T, uint64_t>) return GgufValueType::kUint64;
    if constexpr (std::is_same_v<T, int64_t>) return GgufValueType::kInt64;
  }
  static std::string Text(const std::string& text) {
    return RawBytes(uint64_t{text.size()}) + text;
  }
  static void Pad(std::string& bytes, uint64_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  }

  std::string values_, infos_, data_;
  uint64_t values_added_ = 0;
  uint64_t tensors_added_ = 0;
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_TESTING_GGUF_WRITER_H_
