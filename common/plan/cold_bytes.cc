#include "common/plan/cold_bytes.h"

#include "common/page/page_format.h"

namespace farkv {
namespace {

// Beside rows and results: a checksum per row that is fetched; what names a
// page, and frames a sequence, in an attend request and its answer.
constexpr uint64_t kRowExtraBytes = 4;
constexpr uint64_t kPageExtraBytes = 24;
constexpr uint64_t kSequenceExtraBytes = 256;

}  // namespace

uint64_t FetchBytes(const KvGeometry& geometry, Tier tier, int t2_bits,
                    uint64_t rows, bool checksums) {
  const auto heads = static_cast<uint64_t>(geometry.num_kv_heads);
  if (tier == Tier::kT2) {
    return heads * T2HeadLayout::Of(geometry, t2_bits).head_bytes;
  }
  const uint64_t bytes = geometry.BlockBytes(rows);
  return checksums ? bytes + heads * rows * kRowExtraBytes : bytes;
}

uint64_t AttendMessageBytes(const KvGeometry& geometry, int num_query_heads,
                            uint64_t subtrees, uint64_t pages) {
  const auto query_heads = static_cast<uint64_t>(num_query_heads);
  const uint64_t queries = query_heads * geometry.VectorBytes();
  const uint64_t result = query_heads *
                          static_cast<uint64_t>(geometry.head_dim + 2) *
                          sizeof(float);
  return queries + subtrees * result + kSequenceExtraBytes +
         pages * kPageExtraBytes;
}

}  // namespace farkv
