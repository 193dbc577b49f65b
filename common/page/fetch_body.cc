// FetchRequest and FetchReply; the bytes are described in bodies.h.
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/body_checks.h"
#include "common/page/byte_io.h"

namespace farkv {
namespace {

constexpr char kRequest[] = "FetchRequest";
constexpr char kReply[] = "FetchReply";

// page index, zero or status code, generation; the bitmaps follow.
constexpr uint64_t kItemBytes = 16;

struct Head {
  uint32_t items = 0;
  uint32_t num_kv_heads = 0;
};

absl::StatusOr<Head> ReadHead(ByteReader& reader) {
  FARKV_RETURN_IF_ERROR(CheckLimit(reader.message(), "body bytes",
                                   reader.remaining(), kMaxMessageBytes));
  FARKV_RETURN_IF_ERROR(reader.Require("head", 2, 4));
  Head head;
  head.items = reader.Read<uint32_t>();
  head.num_kv_heads = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(reader.message(), "items", head.items, kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckKvHeads(reader.message(), head.num_kv_heads));
  FARKV_RETURN_IF_ERROR(reader.Require(
      "items", head.items, kItemBytes + 8 * uint64_t{head.num_kv_heads}));
  return head;
}

// Writes items, H; returns H.
absl::StatusOr<uint32_t> WriteHead(ByteWriter& writer, const char* message,
                                   size_t items, int num_kv_heads) {
  FARKV_RETURN_IF_ERROR(CheckLimit(message, "items", items, kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckIndex(message, "KV heads", num_kv_heads));
  const auto heads = static_cast<uint32_t>(num_kv_heads);
  FARKV_RETURN_IF_ERROR(CheckKvHeads(message, heads));
  writer.Put(static_cast<uint32_t>(items));
  writer.Put(heads);
  return heads;
}

absl::Status CheckReplyItem(const FetchReplyItem& item, uint32_t num_kv_heads) {
  FARKV_RETURN_IF_ERROR(CheckIndex(kReply, "page index", item.page_index));
  FARKV_RETURN_IF_ERROR(
      CheckEqual(kReply, "bitmaps", item.rows.size(), num_kv_heads));
  const uint64_t rows = CountRows(item.rows);
  if (item.code != absl::StatusCode::kOk) {
    FARKV_RETURN_IF_ERROR(CheckEqual(kReply, "rows of a failed item", rows, 0));
  }
  return CheckEqual(kReply, "row CRCs", item.row_crcs.size(), rows);
}

absl::StatusOr<FetchReplyItem> ReadReplyItem(ByteReader& reader,
                                             size_t num_kv_heads) {
  FetchReplyItem item;
  FARKV_ASSIGN_OR_RETURN(item.page_index, ReadIndex(reader, "page index"));
  FARKV_ASSIGN_OR_RETURN(item.code, ReadStatusCode(reader));
  item.generation.value = reader.Read<uint64_t>();
  item.rows = ReadBitmaps(reader, num_kv_heads);
  if (item.code != absl::StatusCode::kOk) {
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kReply, "rows of a failed item", CountRows(item.rows), 0));
  }
  return item;
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> EncodeFetchRequest(
    std::span<const FetchItem> items, int num_kv_heads) {
  ByteWriter writer;
  FARKV_ASSIGN_OR_RETURN(
      const uint32_t heads,
      WriteHead(writer, kRequest, items.size(), num_kv_heads));
  for (const FetchItem& item : items) {
    FARKV_RETURN_IF_ERROR(CheckIndex(kRequest, "page index", item.page_index));
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kRequest, "bitmaps", item.rows.size(), heads));
    writer.Put(static_cast<uint32_t>(item.page_index));
    writer.Put(uint32_t{0});
    writer.Put(item.generation.value);
    for (uint64_t bitmap : item.rows) writer.Put(bitmap);
  }
  return writer.Take();
}

absl::StatusOr<std::vector<FetchItem>> DecodeFetchRequest(
    std::span<const std::byte> body) {
  ByteReader reader(body, kRequest);
  FARKV_ASSIGN_OR_RETURN(const Head head, ReadHead(reader));
  std::vector<FetchItem> items(head.items);
  for (FetchItem& item : items) {
    FARKV_ASSIGN_OR_RETURN(item.page_index, ReadIndex(reader, "page index"));
    FARKV_RETURN_IF_ERROR(reader.ReadZero("reserved field of an item"));
    item.generation.value = reader.Read<uint64_t>();
    item.rows = ReadBitmaps(reader, head.num_kv_heads);
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return items;
}

absl::StatusOr<std::vector<std::byte>> EncodeFetchReply(
    std::span<const FetchReplyItem> items, int num_kv_heads) {
  ByteWriter writer;
  FARKV_ASSIGN_OR_RETURN(const uint32_t heads,
                         WriteHead(writer, kReply, items.size(), num_kv_heads));
  for (const FetchReplyItem& item : items) {
    FARKV_RETURN_IF_ERROR(CheckReplyItem(item, heads));
    writer.Put(static_cast<uint32_t>(item.page_index));
    writer.Put(static_cast<uint32_t>(item.code));
    writer.Put(item.generation.value);
    for (uint64_t bitmap : item.rows) writer.Put(bitmap);
  }
  for (const FetchReplyItem& item : items) {
    for (uint32_t crc : item.row_crcs) writer.Put(crc);
  }
  writer.Align();
  return writer.Take();
}

absl::StatusOr<WithRows<std::vector<FetchReplyItem>>> DecodeFetchReply(
    std::span<const std::byte> body, size_t row_bytes) {
  ByteReader reader(body, kReply);
  FARKV_ASSIGN_OR_RETURN(const Head head, ReadHead(reader));
  WithRows<std::vector<FetchReplyItem>> decoded;
  decoded.message.reserve(head.items);
  uint64_t rows = 0;
  for (uint32_t i = 0; i < head.items; ++i) {
    FARKV_ASSIGN_OR_RETURN(FetchReplyItem item,
                           ReadReplyItem(reader, head.num_kv_heads));
    rows += CountRows(item.rows);
    decoded.message.push_back(std::move(item));
  }
  FARKV_RETURN_IF_ERROR(reader.Require("row CRCs", rows, 4));
  for (FetchReplyItem& item : decoded.message) {
    item.row_crcs.resize(CountRows(item.rows));
    for (uint32_t& crc : item.row_crcs) crc = reader.Read<uint32_t>();
  }
  FARKV_RETURN_IF_ERROR(reader.Align("rows"));
  FARKV_RETURN_IF_ERROR(reader.Require("rows", rows, row_bytes));
  decoded.rows = reader.ReadBytes(rows * row_bytes);
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return decoded;
}

}  // namespace farkv
