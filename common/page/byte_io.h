// Bounds-checked reading and writing of little-endian message bodies. A reader
// borrows its bytes and never allocates; a decoder asks Require() for a whole
// table before it allocates room for it, so a hostile count costs nothing.
// Thread-compatible. Private to this room.
#ifndef FARKV_COMMON_PAGE_BYTE_IO_H_
#define FARKV_COMMON_PAGE_BYTE_IO_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/endian.h"

namespace farkv {

inline constexpr size_t kBodyAlignment = 64;

class ByteReader {
 public:
  // `message` is the body's name in errors and must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, const char* message)
      : bytes_(bytes), message_(message) {}

  const char* message() const { return message_; }
  size_t remaining() const { return bytes_.size() - offset_; }

  // INVALID_ARGUMENT unless `count` units of `unit_bytes` are still there.
  // The product must be below 2^64.
  absl::Status Require(const char* part, uint64_t count, uint64_t unit_bytes);

  // Zero past the end, which Finish() then reports: a decoder that forgot a
  // Require() is wrong but never reads outside.
  template <std::integral T>
  T Read() {
    if (remaining() < sizeof(T)) {
      overrun_ = true;
      return T{0};
    }
    const T value = LoadLe<T>(bytes_.data() + offset_);
    offset_ += sizeof(T);
    return value;
  }
  float ReadFloat() { return std::bit_cast<float>(Read<uint32_t>()); }
  void ReadFloats(std::span<float> out) {
    for (float& value : out) value = ReadFloat();
  }
  // The next `count` bytes, borrowed; empty past the end.
  std::span<const std::byte> ReadBytes(size_t count);

  // Skips zeros up to a multiple of kBodyAlignment.
  absl::Status Align(const char* part);
  // The next u32 must be zero.
  absl::Status ReadZero(const char* part);
  // INVALID_ARGUMENT unless every byte was read.
  absl::Status Finish();

 private:
  std::span<const std::byte> bytes_;
  const char* message_;
  size_t offset_ = 0;
  bool overrun_ = false;
};

class ByteWriter {
 public:
  template <std::integral T>
  void Put(T value) {
    StoreLe(Grow(sizeof(T)), value);
  }
  void PutFloat(float value) { Put(std::bit_cast<uint32_t>(value)); }
  void PutFloats(std::span<const float> values) {
    for (float value : values) PutFloat(value);
  }
  void PutBytes(std::span<const std::byte> bytes) {
    if (!bytes.empty()) {
      std::memcpy(Grow(bytes.size()), bytes.data(), bytes.size());
    }
  }
  // Zeros up to a multiple of kBodyAlignment.
  void Align() {
    bytes_.resize((bytes_.size() + kBodyAlignment - 1) / kBodyAlignment *
                  kBodyAlignment);
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::byte* Grow(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return bytes_.data() + bytes_.size() - count;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_BYTE_IO_H_
