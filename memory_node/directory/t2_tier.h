// What the directory needs to keep compressed pages. Plain values.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_T2_TIER_H_
#define FARKV_MEMORY_NODE_DIRECTORY_T2_TIER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "common/layout/kv_geometry.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

// Compresses the live rows of the T1 page at `from` into the T2 page of `bits`
// at `to`, whose header is formatted: writes head parts, bitmaps and CRCs, and
// seals it. `kept`: rows to keep as they are, [KV head] bitmaps. Called with
// no lock held, on several threads at once. memory_node/compress has the one
// that nodes use.
using PageCompressor = std::function<absl::Status(
    const KvGeometry& geometry, int bits, std::span<const uint64_t> kept,
    std::byte* from, std::byte* to)>;

struct T2Tier {
  // Numbered together with the T1 pool; nullptr: the node keeps no T2 pages.
  PagePool* pool = nullptr;
  PageCompressor compress;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_T2_TIER_H_
