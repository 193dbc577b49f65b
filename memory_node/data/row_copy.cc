#include "memory_node/data/row_copy.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/page/page_format.h"

namespace farkv {
namespace {

// Calls visit(first slot, length) for each run of set bits, ascending.
template <typename Visitor>
void ForEachRun(uint64_t bitmap, Visitor visit) {
  int base = 0;
  while (bitmap != 0) {
    const int gap = std::countr_zero(bitmap);
    bitmap >>= gap;
    const int length = std::countr_one(bitmap);
    visit(static_cast<size_t>(base + gap), static_cast<size_t>(length));
    if (length == kPageTokens) return;
    bitmap >>= length;
    base += gap + length;
  }
}

// Calls visit(slot) for each set bit, ascending; false from it ends.
template <typename Visitor>
bool ForEachSlot(uint64_t bitmap, Visitor visit) {
  for (; bitmap != 0; bitmap &= bitmap - 1) {
    if (!visit(static_cast<size_t>(std::countr_zero(bitmap)))) return false;
  }
  return true;
}

absl::Status WrongCrc(size_t head, size_t slot, uint32_t found, uint32_t sent) {
  return absl::DataLossError(
      absl::StrCat("head ", head, ", slot ", slot, ": CRC of the row is 0x",
                   absl::Hex(found), ", the sender's 0x", absl::Hex(sent)));
}

}  // namespace

size_t NumRows(std::span<const uint64_t> bitmaps) {
  size_t rows = 0;
  for (uint64_t bitmap : bitmaps) {
    rows += static_cast<size_t>(std::popcount(bitmap));
  }
  return rows;
}

absl::Status StoreRows(const KvGeometry& geometry,
                       std::span<const uint64_t> rows,
                       std::span<const uint32_t> crcs,
                       std::span<const std::byte> packed, std::byte* page) {
  PageHeader header(page, geometry);
  std::byte* payload = page + PageLayout::T1(geometry).header_bytes;
  const size_t vector_bytes = geometry.VectorBytes();
  const std::byte* from = packed.data();
  size_t next_crc = 0;
  for (size_t head = 0; head < rows.size(); ++head) {
    const auto count = static_cast<size_t>(std::popcount(rows[head]));
    const std::byte* key_from = from;
    const std::byte* value_from = from + count * vector_bytes;
    from += count * geometry.RowBytes();
    absl::Status status;
    ForEachSlot(rows[head], [&](size_t slot) {
      std::byte* key = payload + geometry.KeyOffset(kPageTokens, head, slot);
      std::byte* value =
          payload + geometry.ValueOffset(kPageTokens, head, slot);
      std::memcpy(key, key_from, vector_bytes);
      std::memcpy(value, value_from, vector_bytes);
      key_from += vector_bytes;
      value_from += vector_bytes;
      const uint32_t sent = crcs[next_crc++];
      const uint32_t found = RowCrc({key, vector_bytes}, {value, vector_bytes});
      header.set_row_crc(static_cast<int>(head), static_cast<int>(slot), sent);
      if (found == sent) return true;
      status = WrongCrc(head, slot, found, sent);
      return false;
    });
    if (!status.ok()) return status;
  }
  header.Seal();
  return absl::OkStatus();
}

absl::Status CheckPackedRows(const KvGeometry& geometry,
                             std::span<const uint64_t> rows,
                             std::span<const uint32_t> crcs,
                             std::span<const std::byte> packed) {
  const size_t vector_bytes = geometry.VectorBytes();
  size_t next_crc = 0;
  for (size_t head = 0; head < rows.size(); ++head) {
    const auto count = static_cast<size_t>(std::popcount(rows[head]));
    std::span<const std::byte> keys = packed.first(count * vector_bytes);
    std::span<const std::byte> values =
        packed.subspan(count * vector_bytes, count * vector_bytes);
    packed = packed.subspan(count * geometry.RowBytes());
    absl::Status status;
    ForEachSlot(rows[head], [&](size_t slot) {
      const uint32_t sent = crcs[next_crc++];
      const uint32_t found =
          RowCrc(keys.first(vector_bytes), values.first(vector_bytes));
      keys = keys.subspan(vector_bytes);
      values = values.subspan(vector_bytes);
      if (found == sent) return true;
      status = WrongCrc(head, slot, found, sent);
      return false;
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool HoldsRows(const KvGeometry& geometry, std::span<const uint64_t> rows,
               std::span<const uint32_t> crcs, std::byte* page) {
  const PageHeader header(page, geometry);
  size_t next_crc = 0;
  for (size_t head = 0; head < rows.size(); ++head) {
    const bool same = ForEachSlot(rows[head], [&](size_t slot) {
      return header.row_crc(static_cast<int>(head), static_cast<int>(slot)) ==
             crcs[next_crc++];
    });
    if (!same) return false;
  }
  return true;
}

void GatherRows(const KvGeometry& geometry, std::span<const uint64_t> rows,
                std::byte* page, std::byte* packed,
                std::vector<uint32_t>& crcs) {
  const PageHeader header(page, geometry);
  const std::byte* payload = page + PageLayout::T1(geometry).header_bytes;
  const size_t vector_bytes = geometry.VectorBytes();
  for (size_t head = 0; head < rows.size(); ++head) {
    const auto count = static_cast<size_t>(std::popcount(rows[head]));
    std::byte* keys = packed;
    std::byte* values = packed + count * vector_bytes;
    packed += count * geometry.RowBytes();
    ForEachRun(rows[head], [&](size_t first, size_t length) {
      const size_t bytes = length * vector_bytes;
      std::memcpy(keys, payload + geometry.KeyOffset(kPageTokens, head, first),
                  bytes);
      std::memcpy(values,
                  payload + geometry.ValueOffset(kPageTokens, head, first),
                  bytes);
      keys += bytes;
      values += bytes;
    });
    ForEachSlot(rows[head], [&](size_t slot) {
      crcs.push_back(
          header.row_crc(static_cast<int>(head), static_cast<int>(slot)));
      return true;
    });
  }
}

}  // namespace farkv
