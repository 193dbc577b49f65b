// Rows between a message's packed block and a T1 page. A packed block holds,
// head by head, the keys and then the values of the rows named by a bitmap, in
// slot order (common/page/bodies.h).
//
// Pure functions on caller-owned bytes; the caller holds the page's pin.
#ifndef FARKV_MEMORY_NODE_DATA_ROW_COPY_H_
#define FARKV_MEMORY_NODE_DATA_ROW_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

// Rows named by the bitmaps.
size_t NumRows(std::span<const uint64_t> bitmaps);

// Copies `packed` into the page's rows and checks each row's CRC in the page,
// while it is warm. `crcs` are the sender's, [head][slot ascending]; they are
// put into the page's header, and the header is sealed. DATA_LOSS naming head
// and slot at the first mismatch: the page's content is then undefined, its
// bitmaps are not touched.
absl::Status StoreRows(const KvGeometry& geometry,
                       std::span<const uint64_t> rows,
                       std::span<const uint32_t> crcs,
                       std::span<const std::byte> packed, std::byte* page);

// DATA_LOSS naming head and slot at the first row of `packed` whose CRC is not
// the sender's.
absl::Status CheckPackedRows(const KvGeometry& geometry,
                             std::span<const uint64_t> rows,
                             std::span<const uint32_t> crcs,
                             std::span<const std::byte> packed);

// True when the page's header already carries exactly these CRCs.
bool HoldsRows(const KvGeometry& geometry, std::span<const uint64_t> rows,
               std::span<const uint32_t> crcs, std::byte* page);

// Gathers rows of the page into `packed`, which has room for all of them, and
// appends the stored CRCs to `crcs`.
void GatherRows(const KvGeometry& geometry, std::span<const uint64_t> rows,
                std::byte* page, std::byte* packed,
                std::vector<uint32_t>& crcs);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_ROW_COPY_H_
