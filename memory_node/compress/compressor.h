// A stored T1 page -> a T2 page of the same rows, once. DESIGN 6 "Compress";
// ALGORITHMS 11.3; common/page/t2_codec.h has the arithmetic.
//
// Pure functions on caller-owned bytes; the caller holds both pages.
#ifndef FARKV_MEMORY_NODE_COMPRESS_COMPRESSOR_H_
#define FARKV_MEMORY_NODE_COMPRESS_COMPRESSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"

namespace farkv {

// Compresses the live rows of the T1 page at `from` into the page at `to`,
// PageLayout::T2(geometry, bits).stride bytes whose header is formatted: writes
// head parts, live bitmaps and CRCs, and seals the header. `kept`: rows that
// stay as they are, [KV head] bitmaps, dead ones left aside; the rows with the
// widest values are added. DATA_LOSS when a live row does not fit its CRC,
// OUT_OF_RANGE naming head, slot and channel for a value that cannot be coded;
// `to` is undefined then.
absl::Status CompressPage(const KvGeometry& geometry, int bits,
                          std::span<const uint64_t> kept, std::byte* from,
                          std::byte* to);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_COMPRESS_COMPRESSOR_H_
