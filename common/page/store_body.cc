// StoreRequest and StoreReply; the bytes are described in bodies.h.
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/body_checks.h"
#include "common/page/byte_io.h"

namespace farkv {
namespace {

constexpr char kStoreRequest[] = "StoreRequest";
constexpr char kStoreReply[] = "StoreReply";

// layer, page index, tier, T2 bits, zero, generation; the bitmaps follow.
constexpr uint64_t kItemBytes = 24;

absl::Status CheckItem(const StoreItem& item, uint32_t num_kv_heads) {
  FARKV_RETURN_IF_ERROR(CheckIndex(kStoreRequest, "layer", item.layer));
  FARKV_RETURN_IF_ERROR(
      CheckIndex(kStoreRequest, "page index", item.page_index));
  FARKV_RETURN_IF_ERROR(
      CheckEqual(kStoreRequest, "bitmaps", item.live.size(), num_kv_heads));
  FARKV_RETURN_IF_ERROR(
      CheckTier(kStoreRequest, static_cast<int>(item.tier), item.t2_bits));
  return CheckEqual(kStoreRequest, "row CRCs", item.row_crcs.size(),
                    CountCrcs(item.tier, item.live));
}

absl::StatusOr<StoreItem> ReadItem(ByteReader& reader, size_t num_kv_heads) {
  StoreItem item;
  FARKV_ASSIGN_OR_RETURN(item.layer, ReadIndex(reader, "layer"));
  FARKV_ASSIGN_OR_RETURN(item.page_index, ReadIndex(reader, "page index"));
  FARKV_RETURN_IF_ERROR(ReadTier(reader, item.tier, item.t2_bits));
  FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field of an item"));
  item.generation.value = reader.Read<uint64_t>();
  item.live = ReadBitmaps(reader, num_kv_heads);
  return item;
}

}  // namespace

size_t StoreItem::RowsBytes(const KvGeometry& geometry) const {
  return RowsBytesOf(geometry, tier, t2_bits, live);
}

absl::StatusOr<std::vector<std::byte>> EncodeStoreRequest(
    const StoreRequest& request) {
  const KvGeometry& geometry = request.geometry;
  FARKV_RETURN_IF_ERROR(CheckLimit(kStoreRequest, "items", request.items.size(),
                                   kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckGeometry(kStoreRequest, geometry));
  const auto num_kv_heads = static_cast<uint32_t>(geometry.num_kv_heads);
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(request.items.size()));
  WriteGeometry(writer, geometry);
  uint64_t row_bytes = 0;
  for (const StoreItem& item : request.items) {
    FARKV_RETURN_IF_ERROR(CheckItem(item, num_kv_heads));
    writer.Put(static_cast<uint32_t>(item.layer));
    writer.Put(static_cast<uint32_t>(item.page_index));
    WriteTier(writer, item.tier, item.t2_bits);
    writer.Put(uint32_t{0});
    writer.Put(item.generation.value);
    for (uint64_t bitmap : item.live) writer.Put(bitmap);
    row_bytes += item.RowsBytes(geometry);
  }
  for (const StoreItem& item : request.items) {
    for (uint32_t crc : item.row_crcs) writer.Put(crc);
  }
  writer.Align();
  std::vector<std::byte> bytes = writer.Take();
  FARKV_RETURN_IF_ERROR(CheckLimit(kStoreRequest, "body bytes",
                                   bytes.size() + row_bytes, kMaxMessageBytes));
  return bytes;
}

absl::StatusOr<WithRows<StoreRequest>> DecodeStoreRequest(
    std::span<const std::byte> body) {
  ByteReader reader(body, kStoreRequest);
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kStoreRequest, "body bytes", body.size(), kMaxMessageBytes));
  FARKV_RETURN_IF_ERROR(reader.Require("head", 4, 4));
  const uint32_t items = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kStoreRequest, "items", items, kMaxMessageItems));
  WithRows<StoreRequest> decoded;
  StoreRequest& request = decoded.message;
  FARKV_ASSIGN_OR_RETURN(request.geometry, ReadGeometry(reader));
  const auto num_kv_heads = static_cast<size_t>(request.geometry.num_kv_heads);
  FARKV_RETURN_IF_ERROR(
      reader.Require("items", items, kItemBytes + 8 * num_kv_heads));
  request.items.reserve(items);
  uint64_t crcs = 0;
  uint64_t row_bytes = 0;
  for (uint32_t i = 0; i < items; ++i) {
    FARKV_ASSIGN_OR_RETURN(StoreItem item, ReadItem(reader, num_kv_heads));
    crcs += CountCrcs(item.tier, item.live);
    row_bytes += item.RowsBytes(request.geometry);
    request.items.push_back(std::move(item));
  }
  FARKV_RETURN_IF_ERROR(reader.Require("row CRCs", crcs, 4));
  for (StoreItem& item : request.items) {
    item.row_crcs.resize(CountCrcs(item.tier, item.live));
    for (uint32_t& crc : item.row_crcs) crc = reader.Read<uint32_t>();
  }
  FARKV_RETURN_IF_ERROR(reader.Align("rows"));
  FARKV_RETURN_IF_ERROR(reader.Require("rows", row_bytes, 1));
  decoded.rows = reader.ReadBytes(row_bytes);
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return decoded;
}

std::vector<std::byte> EncodeStoreReply(
    std::span<const absl::StatusCode> codes) {
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(codes.size()));
  writer.Put(uint32_t{0});
  for (absl::StatusCode code : codes) {
    writer.Put(static_cast<uint32_t>(code));
    writer.Put(uint32_t{0});
  }
  return writer.Take();
}

absl::StatusOr<std::vector<absl::StatusCode>> DecodeStoreReply(
    std::span<const std::byte> body) {
  ByteReader reader(body, kStoreReply);
  FARKV_RETURN_IF_ERROR(reader.Require("head", 2, 4));
  const uint32_t items = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kStoreReply, "items", items, kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field"));
  FARKV_RETURN_IF_ERROR(reader.Require("items", items, 8));
  std::vector<absl::StatusCode> codes;
  codes.reserve(items);
  for (uint32_t i = 0; i < items; ++i) {
    FARKV_ASSIGN_OR_RETURN(const absl::StatusCode code, ReadStatusCode(reader));
    FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field of an item"));
    codes.push_back(code);
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return codes;
}

}  // namespace farkv
