// FetchRequest and FetchReply; the bytes are described in bodies.h.
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/body_checks.h"
#include "common/page/byte_io.h"

namespace farkv {
namespace {

constexpr char kFetchRequest[] = "FetchRequest";
constexpr char kFetchReply[] = "FetchReply";

// page index, tier, T2 bits, generation; the bitmaps follow.
constexpr uint64_t kRequestItemBytes = 16;
// page index, status code, generation, tier, T2 bits, zero; the bitmaps follow.
constexpr uint64_t kReplyItemBytes = 24;

absl::Status CheckBody(const ByteReader& reader) {
  return CheckLimit(reader.message(), "body bytes", reader.remaining(),
                    kMaxMessageBytes);
}

absl::Status CheckRequestItem(const FetchItem& item, uint32_t num_kv_heads) {
  FARKV_RETURN_IF_ERROR(
      CheckIndex(kFetchRequest, "page index", item.page_index));
  FARKV_RETURN_IF_ERROR(
      CheckTier(kFetchRequest, static_cast<int>(item.tier), item.t2_bits));
  return CheckEqual(kFetchRequest, "bitmaps", item.rows.size(), num_kv_heads);
}

absl::Status CheckFailedItem(const FetchReplyItem& item) {
  if (item.code == absl::StatusCode::kOk) return absl::OkStatus();
  return CheckEqual(kFetchReply, "rows of a failed item", CountRows(item.rows),
                    0);
}

absl::Status CheckReplyItem(const FetchReplyItem& item, uint32_t num_kv_heads) {
  FARKV_RETURN_IF_ERROR(CheckIndex(kFetchReply, "page index", item.page_index));
  FARKV_RETURN_IF_ERROR(
      CheckTier(kFetchReply, static_cast<int>(item.tier), item.t2_bits));
  FARKV_RETURN_IF_ERROR(
      CheckEqual(kFetchReply, "bitmaps", item.rows.size(), num_kv_heads));
  FARKV_RETURN_IF_ERROR(CheckFailedItem(item));
  return CheckEqual(kFetchReply, "row CRCs", item.row_crcs.size(),
                    CountCrcs(item.tier, item.rows));
}

void WriteReplyItem(ByteWriter& writer, const FetchReplyItem& item) {
  writer.Put(static_cast<uint32_t>(item.page_index));
  writer.Put(static_cast<uint32_t>(item.code));
  writer.Put(item.generation.value);
  WriteTier(writer, item.tier, item.t2_bits);
  writer.Put(uint32_t{0});
  for (uint64_t bitmap : item.rows) writer.Put(bitmap);
}

absl::StatusOr<FetchReplyItem> ReadReplyItem(ByteReader& reader,
                                             size_t num_kv_heads) {
  FetchReplyItem item;
  FARKV_ASSIGN_OR_RETURN(item.page_index, ReadIndex(reader, "page index"));
  FARKV_ASSIGN_OR_RETURN(item.code, ReadStatusCode(reader));
  item.generation.value = reader.Read<uint64_t>();
  FARKV_RETURN_IF_ERROR(ReadTier(reader, item.tier, item.t2_bits));
  FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field of an item"));
  item.rows = ReadBitmaps(reader, num_kv_heads);
  FARKV_RETURN_IF_ERROR(CheckFailedItem(item));
  return item;
}

// Head and items, without their row CRCs.
absl::StatusOr<FetchReply> ReadReplyItems(ByteReader& reader) {
  FARKV_RETURN_IF_ERROR(reader.Require("head", 4, 4));
  const uint32_t items = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kFetchReply, "items", items, kMaxMessageItems));
  FetchReply reply;
  FARKV_ASSIGN_OR_RETURN(reply.geometry, ReadGeometry(reader));
  const auto num_kv_heads = static_cast<size_t>(reply.geometry.num_kv_heads);
  FARKV_RETURN_IF_ERROR(
      reader.Require("items", items, kReplyItemBytes + 8 * num_kv_heads));
  reply.items.reserve(items);
  for (uint32_t i = 0; i < items; ++i) {
    FARKV_ASSIGN_OR_RETURN(FetchReplyItem item,
                           ReadReplyItem(reader, num_kv_heads));
    reply.items.push_back(std::move(item));
  }
  return reply;
}

}  // namespace

size_t FetchReplyItem::RowsBytes(const KvGeometry& geometry) const {
  return RowsBytesOf(geometry, tier, t2_bits, rows);
}

absl::StatusOr<std::vector<std::byte>> EncodeFetchRequest(
    std::span<const FetchItem> items, int num_kv_heads) {
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kFetchRequest, "items", items.size(), kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckIndex(kFetchRequest, "KV heads", num_kv_heads));
  const auto heads = static_cast<uint32_t>(num_kv_heads);
  FARKV_RETURN_IF_ERROR(CheckKvHeads(kFetchRequest, heads));
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(items.size()));
  writer.Put(heads);
  for (const FetchItem& item : items) {
    FARKV_RETURN_IF_ERROR(CheckRequestItem(item, heads));
    writer.Put(static_cast<uint32_t>(item.page_index));
    WriteTier(writer, item.tier, item.t2_bits);
    writer.Put(item.generation.value);
    for (uint64_t bitmap : item.rows) writer.Put(bitmap);
  }
  return writer.Take();
}

absl::StatusOr<std::vector<FetchItem>> DecodeFetchRequest(
    std::span<const std::byte> body) {
  ByteReader reader(body, kFetchRequest);
  FARKV_RETURN_IF_ERROR(CheckBody(reader));
  FARKV_RETURN_IF_ERROR(reader.Require("head", 2, 4));
  const uint32_t count = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kFetchRequest, "items", count, kMaxMessageItems));
  const uint32_t num_kv_heads = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(CheckKvHeads(kFetchRequest, num_kv_heads));
  FARKV_RETURN_IF_ERROR(reader.Require(
      "items", count, kRequestItemBytes + 8 * uint64_t{num_kv_heads}));
  std::vector<FetchItem> items(count);
  for (FetchItem& item : items) {
    FARKV_ASSIGN_OR_RETURN(item.page_index, ReadIndex(reader, "page index"));
    FARKV_RETURN_IF_ERROR(ReadTier(reader, item.tier, item.t2_bits));
    item.generation.value = reader.Read<uint64_t>();
    item.rows = ReadBitmaps(reader, num_kv_heads);
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return items;
}

absl::StatusOr<std::vector<std::byte>> EncodeFetchReply(
    const FetchReply& reply) {
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kFetchReply, "items", reply.items.size(), kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckGeometry(kFetchReply, reply.geometry));
  const auto num_kv_heads = static_cast<uint32_t>(reply.geometry.num_kv_heads);
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(reply.items.size()));
  WriteGeometry(writer, reply.geometry);
  uint64_t row_bytes = 0;
  for (const FetchReplyItem& item : reply.items) {
    FARKV_RETURN_IF_ERROR(CheckReplyItem(item, num_kv_heads));
    WriteReplyItem(writer, item);
    row_bytes += item.RowsBytes(reply.geometry);
  }
  for (const FetchReplyItem& item : reply.items) {
    for (uint32_t crc : item.row_crcs) writer.Put(crc);
  }
  writer.Align();
  std::vector<std::byte> bytes = writer.Take();
  FARKV_RETURN_IF_ERROR(CheckLimit(kFetchReply, "body bytes",
                                   bytes.size() + row_bytes, kMaxMessageBytes));
  return bytes;
}

absl::StatusOr<WithRows<FetchReply>> DecodeFetchReply(
    std::span<const std::byte> body) {
  ByteReader reader(body, kFetchReply);
  FARKV_RETURN_IF_ERROR(CheckBody(reader));
  WithRows<FetchReply> decoded;
  FARKV_ASSIGN_OR_RETURN(decoded.message, ReadReplyItems(reader));
  uint64_t crcs = 0;
  uint64_t row_bytes = 0;
  for (const FetchReplyItem& item : decoded.message.items) {
    crcs += CountCrcs(item.tier, item.rows);
    row_bytes += item.RowsBytes(decoded.message.geometry);
  }
  FARKV_RETURN_IF_ERROR(reader.Require("row CRCs", crcs, 4));
  for (FetchReplyItem& item : decoded.message.items) {
    item.row_crcs.resize(CountCrcs(item.tier, item.rows));
    for (uint32_t& crc : item.row_crcs) crc = reader.Read<uint32_t>();
  }
  FARKV_RETURN_IF_ERROR(reader.Align("rows"));
  FARKV_RETURN_IF_ERROR(reader.Require("rows", row_bytes, 1));
  decoded.rows = reader.ReadBytes(row_bytes);
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return decoded;
}

}  // namespace farkv
