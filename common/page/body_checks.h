// Checks that the bodies of this room share: limits, geometry, bitmaps, status
// codes. Every error is INVALID_ARGUMENT and starts with the message's name.
// Pure. Private to this room.
#ifndef FARKV_COMMON_PAGE_BODY_CHECKS_H_
#define FARKV_COMMON_PAGE_BODY_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/kv_geometry.h"
#include "common/page/byte_io.h"

namespace farkv {

// `value` must not exceed `limit`.
absl::Status CheckLimit(const char* message, const char* part, uint64_t value,
                        uint64_t limit);
// `value` must equal `expected`.
absl::Status CheckEqual(const char* message, const char* part, uint64_t value,
                        uint64_t expected);
// One KV head to 256, the range of KvGeometry.
absl::Status CheckKvHeads(const char* message, uint32_t num_kv_heads);
// Heads, head_dim and dtype of a geometry without layers.
absl::Status CheckGeometry(const char* message, const KvGeometry& geometry);
// What an item of rows may say: T1 with 0 bits, T2 with 8 or 4.
absl::Status CheckTier(const char* message, int tier, int t2_bits);
// Query heads: a multiple of the KV heads, at most kMaxQueryHeads.
absl::Status CheckQueryHeads(const char* message, uint32_t num_query_heads,
                             uint32_t num_kv_heads);

// Set bits of all bitmaps: rows of a page.
uint64_t CountRows(std::span<const uint64_t> bitmaps);
// Row CRCs of an item: one per row, in T2 one per head that has rows.
uint64_t CountCrcs(Tier tier, std::span<const uint64_t> bitmaps);
// Bytes of an item's piece of the rows part.
size_t RowsBytesOf(const KvGeometry& geometry, Tier tier, int t2_bits,
                   std::span<const uint64_t> bitmaps);

// H, d and dtype in the order of the heads of StoreRequest and FetchReply.
void WriteGeometry(ByteWriter& writer, const KvGeometry& geometry);
void WriteTier(ByteWriter& writer, Tier tier, int t2_bits);

// Each of these reads what a Require() has covered.
absl::StatusOr<KvGeometry> ReadGeometry(ByteReader& reader);
absl::Status ReadTier(ByteReader& reader, Tier& tier, int& t2_bits);
absl::StatusOr<int32_t> ReadIndex(ByteReader& reader, const char* part);
absl::StatusOr<absl::StatusCode> ReadStatusCode(ByteReader& reader);
std::vector<uint64_t> ReadBitmaps(ByteReader& reader, size_t num_kv_heads);

// Page indices ascend; `before` is -1 for the first.
absl::Status CheckAscending(const char* message, int32_t before, int32_t page);

// Negative indices have no form on the wire.
absl::Status CheckIndex(const char* message, const char* part, int32_t index);

}  // namespace farkv

#endif  // FARKV_COMMON_PAGE_BODY_CHECKS_H_
