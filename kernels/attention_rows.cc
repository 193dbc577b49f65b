// From runs and bitmaps to the row pointers of a leaf.
#include <bit>

#include "kernels/attention_leaf.h"

namespace farkv {
namespace {

uint64_t LowBits(int count) {
  return count >= kPageTokens ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// Appends every row of the run, from its first slot on.
int AppendAll(const Run& run, const std::byte* key, const std::byte* value,
              size_t vector_bytes, int count, LeafRows& rows) {
  for (int i = 0; i < run.length; ++i) {
    const size_t offset = static_cast<size_t>(i) * vector_bytes;
    rows.slot[count + i] = static_cast<uint8_t>(run.first_slot + i);
    rows.key[count + i] = key + offset;
    rows.value[count + i] = value + offset;
  }
  return count + run.length;
}

int AppendLive(const Run& run, const std::byte* key, const std::byte* value,
               size_t vector_bytes, uint64_t bits, int count, LeafRows& rows) {
  for (; bits != 0; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    const size_t offset = static_cast<size_t>(i) * vector_bytes;
    rows.slot[count] = static_cast<uint8_t>(run.first_slot + i);
    rows.key[count] = key + offset;
    rows.value[count] = value + offset;
    ++count;
  }
  return count;
}

}  // namespace

uint64_t CausalMask(int32_t page_index, int64_t position) {
  const int64_t first = static_cast<int64_t>(page_index) * kPageTokens;
  if (position < first) return 0;
  const int64_t visible = position - first + 1;
  return LowBits(visible < kPageTokens ? static_cast<int>(visible)
                                       : kPageTokens);
}

void CollectRows(const KvGeometry& geometry, const PageRuns& page, int head,
                 uint64_t live, LeafRows& rows) {
  const size_t vector_bytes = geometry.VectorBytes();
  int count = 0;
  rows.live = 0;
  for (const Run& run : page.runs) {
    const uint64_t all = LowBits(run.length);
    const uint64_t bits = (live >> run.first_slot) & all;
    if (bits == 0) continue;
    const size_t offset = static_cast<size_t>(head) * run.head_stride;
    const std::byte* key = run.keys + offset;
    const std::byte* value = run.values + offset;
    count = bits == all
                ? AppendAll(run, key, value, vector_bytes, count, rows)
                : AppendLive(run, key, value, vector_bytes, bits, count, rows);
    rows.live |= bits << run.first_slot;
  }
  rows.count = count;
  for (int i = count; i < kPageTokens && count > 0; ++i) {
    rows.key[i] = rows.key[count - 1];
    rows.value[i] = rows.value[count - 1];
  }
}

}  // namespace farkv
