#include "memory_node/data/t2_rows.h"

#include <cstring>

#include "common/page/page_format.h"
#include "common/page/t2_codec.h"

namespace farkv {
namespace {

std::span<const std::byte> HeadPart(const KvGeometry& geometry, int bits,
                                    int head, const std::byte* page) {
  const size_t part_bytes = T2HeadLayout::Of(geometry, bits).head_bytes;
  const size_t header_bytes = PageLayout::T2(geometry, bits).header_bytes;
  return {page + header_bytes + static_cast<size_t>(head) * part_bytes,
          part_bytes};
}

}  // namespace

void GatherT2Heads(const KvGeometry& geometry, int bits,
                   std::span<const uint64_t> rows, std::byte* page,
                   std::byte* packed, std::vector<uint32_t>& crcs) {
  const PageHeader header(page, geometry);
  const std::byte* parts = page + PageLayout::T2(geometry, bits).header_bytes;
  const size_t part_bytes = T2HeadLayout::Of(geometry, bits).head_bytes;
  for (size_t head = 0; head < rows.size(); ++head) {
    if (rows[head] == 0) continue;
    std::memcpy(packed, parts + head * part_bytes, part_bytes);
    packed += part_bytes;
    crcs.push_back(header.row_crc(static_cast<int>(head), 0));
  }
}

absl::Status DecodeT2Rows(const KvGeometry& geometry, int bits, int head,
                          const std::byte* page, std::byte* block) {
  const auto h = static_cast<size_t>(head);
  return DecodeT2Slots(geometry, bits, head, page, ~uint64_t{0},
                       block + geometry.KeyOffset(kPageTokens, h, 0),
                       block + geometry.ValueOffset(kPageTokens, h, 0));
}

absl::Status DecodeT2Slots(const KvGeometry& geometry, int bits, int head,
                           const std::byte* page, uint64_t slots,
                           std::byte* keys, std::byte* values) {
  return DecodeT2Head(geometry, bits, HeadPart(geometry, bits, head, page),
                      slots, keys, values);
}

}  // namespace farkv
