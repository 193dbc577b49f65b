#include "common/page/byte_io.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace farkv {

absl::Status ByteReader::Require(const char* part, uint64_t count,
                                 uint64_t unit_bytes) {
  if (count * unit_bytes <= remaining()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      message_, ": ", part, " needs ", count, " x ", unit_bytes,
      " bytes at offset ", offset_, ", the body has ", bytes_.size()));
}

std::span<const std::byte> ByteReader::ReadBytes(size_t count) {
  if (remaining() < count) {
    overrun_ = true;
    return {};
  }
  const std::span<const std::byte> part = bytes_.subspan(offset_, count);
  offset_ += count;
  return part;
}

absl::Status ByteReader::Align(const char* part) {
  const size_t padding =
      (kBodyAlignment - offset_ % kBodyAlignment) % kBodyAlignment;
  if (absl::Status s = Require(part, padding, 1); !s.ok()) return s;
  const std::span<const std::byte> zeros = ReadBytes(padding);
  if (std::any_of(zeros.begin(), zeros.end(),
                  [](std::byte b) { return b != std::byte{0}; })) {
    return absl::InvalidArgumentError(
        absl::StrCat(message_, ": padding before ", part, " at offset ",
                     offset_ - padding, " is not zero"));
  }
  return absl::OkStatus();
}

absl::Status ByteReader::ReadZero(const char* part) {
  if (absl::Status s = Require(part, 1, 4); !s.ok()) return s;
  const uint32_t value = Read<uint32_t>();
  if (value == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(message_, ": ", part, " is ", value, ", must be zero"));
}

absl::Status ByteReader::Finish() {
  if (overrun_) {
    return absl::InvalidArgumentError(
        absl::StrCat(message_, ": read past its ", bytes_.size(), " bytes"));
  }
  if (remaining() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(message_, ": ", remaining(), " bytes left over at offset ",
                   offset_, " of ", bytes_.size()));
}

}  // namespace farkv
