#include "common/page/body_checks.h"

#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/page/bodies.h"

namespace farkv {

absl::Status CheckLimit(const char* message, const char* part, uint64_t value,
                        uint64_t limit) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(message, ": ", part, " is ", value, ", at most ", limit));
}

absl::Status CheckEqual(const char* message, const char* part, uint64_t value,
                        uint64_t expected) {
  if (value == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(message, ": ", part, " is ", value, ", must be ", expected));
}

absl::Status CheckGeometry(const char* message, const KvGeometry& geometry) {
  KvGeometry one_layer = geometry;
  one_layer.num_layers = 1;
  const absl::Status status = one_layer.Validate();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(message, ": ", status.message()));
}

absl::Status CheckKvHeads(const char* message, uint32_t num_kv_heads) {
  if (num_kv_heads > std::numeric_limits<int32_t>::max()) {
    return CheckLimit(message, "KV heads", num_kv_heads, 256);
  }
  KvGeometry any;
  any.num_kv_heads = static_cast<int32_t>(num_kv_heads);
  any.head_dim = 16;
  return CheckGeometry(message, any);
}

absl::Status CheckQueryHeads(const char* message, uint32_t num_query_heads,
                             uint32_t num_kv_heads) {
  if (num_query_heads > 0 && num_query_heads <= kMaxQueryHeads &&
      num_query_heads % num_kv_heads == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      message, ": query heads is ", num_query_heads, ", must be a multiple of ",
      num_kv_heads, " and in [1, ", kMaxQueryHeads, "]"));
}

uint64_t CountRows(std::span<const uint64_t> bitmaps) {
  uint64_t rows = 0;
  for (uint64_t bitmap : bitmaps) {
    rows += static_cast<uint64_t>(std::popcount(bitmap));
  }
  return rows;
}

absl::StatusOr<int32_t> ReadIndex(ByteReader& reader, const char* part) {
  const uint32_t value = reader.Read<uint32_t>();
  if (absl::Status s = CheckLimit(reader.message(), part, value,
                                  std::numeric_limits<int32_t>::max());
      !s.ok()) {
    return s;
  }
  return static_cast<int32_t>(value);
}

absl::StatusOr<absl::StatusCode> ReadStatusCode(ByteReader& reader) {
  const uint32_t value = reader.Read<uint32_t>();
  if (absl::Status s =
          CheckLimit(reader.message(), "status code", value,
                     static_cast<uint64_t>(absl::StatusCode::kUnauthenticated));
      !s.ok()) {
    return s;
  }
  return static_cast<absl::StatusCode>(value);
}

std::vector<uint64_t> ReadBitmaps(ByteReader& reader, size_t num_kv_heads) {
  std::vector<uint64_t> bitmaps(num_kv_heads);
  for (uint64_t& bitmap : bitmaps) bitmap = reader.Read<uint64_t>();
  return bitmaps;
}

absl::Status CheckIndex(const char* message, const char* part, int32_t index) {
  if (index >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(message, ": ", part, " is ",
                                                 index,
                                                 ", must not be "
                                                 "negative"));
}

}  // namespace farkv
