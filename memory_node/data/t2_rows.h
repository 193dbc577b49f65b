// Reading T2 pages: whole head parts for fetches, dequantised rows for
// attention and decisions. Pure functions on caller-owned bytes; the caller
// holds the pin.
#ifndef FARKV_MEMORY_NODE_DATA_T2_ROWS_H_
#define FARKV_MEMORY_NODE_DATA_T2_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

// Copies the part of each head whose bitmap is not zero into `packed`, which
// has room for them, and appends the parts' CRCs as stored to `crcs`.
void GatherT2Heads(const KvGeometry& geometry, int bits,
                   std::span<const uint64_t> rows, std::byte* page,
                   std::byte* packed, std::vector<uint32_t>& crcs);

// Decodes one head of the page into its place in `block`, a block of 64 rows
// (kv_geometry.h): the bits that every party computes with. Dead slots get
// values that nobody reads. DATA_LOSS as DecodeT2Head.
absl::Status DecodeT2Rows(const KvGeometry& geometry, int bits, int head,
                          const std::byte* page, std::byte* block);

// Decodes the rows of one head that `slots` names, packed in slot order, the
// same bits. Both have room for them. Slots must live. DATA_LOSS likewise.
absl::Status DecodeT2Slots(const KvGeometry& geometry, int bits, int head,
                           const std::byte* page, uint64_t slots,
                           std::byte* keys, std::byte* values);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_T2_ROWS_H_
