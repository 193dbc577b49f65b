// Bytes that cold rows of one layer put on the link, fetched or pushed down, as
// common/page/bodies.h frames them. Pure.
#ifndef FARKV_COMMON_PLAN_COLD_BYTES_H_
#define FARKV_COMMON_PLAN_COLD_BYTES_H_

#include <cstdint>

#include "common/layout/kv_geometry.h"

namespace farkv {

// Rows that a step fetches of one layer from one node are in memory together,
// and a transport takes in so much at a time: a step with more runs in parts.
// The worker's TieringOptions::max_layer_fetch_bytes, by default.
inline constexpr uint64_t kMaxLayerFetchBytes = uint64_t{896} << 20;
// Rows of the computing layer and of those ahead of it; the latter wait for
// room. As TieringOptions::staging_bytes and prefetch_layers.
inline constexpr uint64_t kStagingBytes = uint64_t{256} << 20;
inline constexpr int kPrefetchLayers = 2;

// `rows` positions of one page, all heads: their rows and, unless `checksums`
// is false, a checksum for each. Of a T2 page, always the whole page.
uint64_t FetchBytes(const KvGeometry& geometry, Tier tier, int t2_bits,
                    uint64_t rows, bool checksums = true);

// What one sequence adds to an attend request and its answer: queries in the KV
// dtype, `subtrees` partial results (m, l and O in fp32), names of `pages`.
uint64_t AttendMessageBytes(const KvGeometry& geometry, int num_query_heads,
                            uint64_t subtrees, uint64_t pages);

}  // namespace farkv

#endif  // FARKV_COMMON_PLAN_COLD_BYTES_H_
