#include "memory_node/compress/compressor.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/page/page_format.h"
#include "common/page/t2_codec.h"

namespace farkv {

absl::Status CompressPage(const KvGeometry& geometry, int bits,
                          std::span<const uint64_t> kept, std::byte* from,
                          std::byte* to) {
  const PageHeader source(from, geometry);
  std::vector<uint64_t> live;
  for (int head = 0; head < geometry.num_kv_heads; ++head) {
    live.push_back(source.live(head));
  }
  // What is damaged must not get a CRC that fits.
  FARKV_RETURN_IF_ERROR(CheckPageRows(from, geometry, live));
  PageHeader header(to, geometry);
  const std::byte* rows = from + PageLayout::T1(geometry).header_bytes;
  std::byte* parts = to + PageLayout::T2(geometry, bits).header_bytes;
  const size_t part_bytes = T2HeadLayout::Of(geometry, bits).head_bytes;
  for (int head = 0; head < geometry.num_kv_heads; ++head) {
    const auto h = static_cast<size_t>(head);
    const T1Head t1 = {rows + geometry.KeyOffset(kPageTokens, h, 0),
                       rows + geometry.ValueOffset(kPageTokens, h, 0)};
    const std::span<std::byte> part(parts + h * part_bytes, part_bytes);
    const absl::Status encoded =
        EncodeT2Head(geometry, bits, t1, live[h],
                     ChooseT2Exceptions(geometry, t1, live[h], kept[h]), part);
    if (!encoded.ok()) {
      return absl::Status(encoded.code(),
                          absl::StrCat("head ", head, ": ", encoded.message()));
    }
    header.set_row_crc(head, 0, Crc32c(part));
    header.set_live(head, live[h]);
  }
  header.Seal();
  return absl::OkStatus();
}

}  // namespace farkv
