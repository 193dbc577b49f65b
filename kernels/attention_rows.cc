// From runs and bitmaps to the row pointers of a leaf. Compiled once per
// Highway target for the sake of the pointer loops; no arithmetic on rows.
#include <bit>
#include <cassert>

#include "kernels/attention_leaf.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {

HWY_INLINE uint64_t LowBits(int count) {
  return count >= kPageTokens ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// Appends every row of the run, from its first slot on.
HWY_INLINE int AppendAll(const Run& run, const std::byte* key,
                         const std::byte* value, size_t vector_bytes, int count,
                         LeafRows& rows) {
  const std::byte** keys = rows.key + count;
  const std::byte** values = rows.value + count;
  uint8_t* slots = rows.slot + count;
  for (size_t i = 0; i < run.length; ++i) keys[i] = key + i * vector_bytes;
  for (size_t i = 0; i < run.length; ++i) values[i] = value + i * vector_bytes;
  for (int i = 0; i < run.length; ++i) {
    slots[i] = static_cast<uint8_t>(run.first_slot + i);
  }
  return count + run.length;
}

HWY_INLINE int AppendLive(const Run& run, const std::byte* key,
                          const std::byte* value, size_t vector_bytes,
                          uint64_t bits, int count, LeafRows& rows) {
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

void Collect(size_t vector_bytes, const PageRuns& page, int head, uint64_t live,
             LeafRows& rows) {
  int count = 0;
  uint64_t found = 0;
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
    found |= bits << run.first_slot;
  }
  assert(found == live);  // every live slot must lie in a run
  rows.live = found;
  rows.count = count;
  for (int i = count; i < kPageTokens && count > 0; ++i) {
    rows.key[i] = rows.key[count - 1];
    rows.value[i] = rows.value[count - 1];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farkv {

HWY_EXPORT(Collect);

uint64_t CausalMask(int32_t page_index, int64_t position) {
  const int64_t first = static_cast<int64_t>(page_index) * kPageTokens;
  if (position < first) return 0;
  const int64_t visible = position - first + 1;
  return visible >= kPageTokens ? ~uint64_t{0} : (uint64_t{1} << visible) - 1;
}

void CollectRows(const KvGeometry& geometry, const PageRuns& page, int head,
                 uint64_t live, LeafRows& rows) {
  HWY_DYNAMIC_DISPATCH(Collect)
  (geometry.VectorBytes(), page, head, live, rows);
}

}  // namespace farkv
#endif  // HWY_ONCE
