#include "common/page/body_checks.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"

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

absl::Status CheckTier(const char* message, int tier, int t2_bits) {
  const bool t2 = tier == static_cast<int>(Tier::kT2);
  if (!t2 && tier != static_cast<int>(Tier::kT1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(message, ": tier is ", tier, ", must be 1 or 2"));
  }
  if (t2 ? t2_bits == 8 || t2_bits == 4 : t2_bits == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(message, ": T2 bits is ", t2_bits, " with tier ", tier,
                   ", must be ", t2 ? "8 or 4" : "0"));
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

absl::Status CheckAscending(const char* message, int32_t before, int32_t page) {
  if (page > before) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(message, ": page index ", page, " follows ", before,
                   "; page indices are not negative and ascend"));
}

uint64_t CountRows(std::span<const uint64_t> bitmaps) {
  uint64_t rows = 0;
  for (uint64_t bitmap : bitmaps) {
    rows += static_cast<uint64_t>(std::popcount(bitmap));
  }
  return rows;
}

uint64_t CountCrcs(Tier tier, std::span<const uint64_t> bitmaps) {
  if (tier != Tier::kT2) return CountRows(bitmaps);
  return static_cast<uint64_t>(
      std::count_if(bitmaps.begin(), bitmaps.end(),
                    [](uint64_t bitmap) { return bitmap != 0; }));
}

size_t RowsBytesOf(const KvGeometry& geometry, Tier tier, int t2_bits,
                   std::span<const uint64_t> bitmaps) {
  const size_t unit = tier == Tier::kT2
                          ? T2HeadLayout::Of(geometry, t2_bits).head_bytes
                          : geometry.RowBytes();
  return CountCrcs(tier, bitmaps) * unit;
}

void WriteGeometry(ByteWriter& writer, const KvGeometry& geometry) {
  writer.Put(static_cast<uint32_t>(geometry.num_kv_heads));
  writer.Put(static_cast<uint32_t>(geometry.head_dim));
  writer.Put(static_cast<uint32_t>(geometry.dtype));
}

void WriteTier(ByteWriter& writer, Tier tier, int t2_bits) {
  writer.Put(static_cast<uint16_t>(tier));
  writer.Put(static_cast<uint16_t>(t2_bits));
}

absl::StatusOr<KvGeometry> ReadGeometry(ByteReader& reader) {
  KvGeometry geometry;
  FARKV_ASSIGN_OR_RETURN(geometry.num_kv_heads, ReadIndex(reader, "KV heads"));
  FARKV_ASSIGN_OR_RETURN(geometry.head_dim, ReadIndex(reader, "head_dim"));
  const uint32_t dtype = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckLimit(reader.message(), "dtype", dtype, 255));
  geometry.dtype = static_cast<DType>(dtype);
  FARKV_RETURN_IF_ERROR(CheckGeometry(reader.message(), geometry));
  return geometry;
}

absl::Status ReadTier(ByteReader& reader, Tier& tier, int& t2_bits) {
  const uint16_t value = reader.Read<uint16_t>();
  const uint16_t bits = reader.Read<uint16_t>();
  FARKV_RETURN_IF_ERROR(CheckTier(reader.message(), value, bits));
  tier = static_cast<Tier>(value);
  t2_bits = bits;
  return absl::OkStatus();
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
