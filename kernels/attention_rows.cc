// From runs and bitmaps to the rows of a leaf.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "kernels/attention_leaf.h"

namespace farkv {
namespace {

uint64_t LowBits(int64_t count) {
  return count >= kPageTokens ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

uintptr_t Address(const std::byte* at) {
  return reinterpret_cast<uintptr_t>(at);
}

// Appends the rows of one run whose bit, counted from its first slot, is set.
void Append(const Run& run, int head, size_t vector_bytes, uint64_t bits,
            LeafRows& rows) {
  const size_t to_head = static_cast<size_t>(head) * run.head_stride;
  const uintptr_t key = Address(run.keys) + to_head;
  const uintptr_t value = Address(run.values) + to_head;
  int count = rows.count;
  for (; bits != 0; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    const size_t offset = static_cast<size_t>(i) * vector_bytes;
    rows.own_slot[count] = static_cast<uint8_t>(run.first_slot + i);
    rows.own_key[count] = key + offset;
    rows.own_value[count] = value + offset;
    ++count;
  }
  rows.count = count;
}

// A live row without memory would silently be left out of the result.
[[noreturn]] void DieOfMissingRows(const PageRuns& page, int head,
                                   uint64_t live, int found) {
  std::fprintf(stderr,
               "attention: page %d, KV head %d: live rows %016" PRIx64
               " are %d, but the page's runs hold %d of them\n",
               page.page_index, head, live, std::popcount(live), found);
  std::abort();
}

}  // namespace

uint64_t CausalMask(int32_t page_index, int64_t position) {
  const int64_t first = static_cast<int64_t>(page_index) * kPageTokens;
  return position < first ? 0 : LowBits(position - first + 1);
}

void DenseRows::Set(size_t bytes) {
  if (vector_bytes == bytes) return;
  vector_bytes = bytes;
  for (size_t i = 0; i < kPageTokens; ++i) {
    offset[i] = i * bytes;
    slot[i] = static_cast<uint8_t>(i);
  }
}

void CollectRows(const DenseRows& dense, const PageRuns& page, int head,
                 uint64_t live, LeafRows& rows) {
  if (live == ~uint64_t{0} && page.runs.size() == 1 &&
      page.runs[0].length == kPageTokens) {
    const Run& run = page.runs[0];
    const size_t to_head = static_cast<size_t>(head) * run.head_stride;
    rows.count = kPageTokens;
    rows.keys = Address(run.keys) + to_head;
    rows.values = Address(run.values) + to_head;
    rows.key_offset = dense.offset;
    rows.value_offset = dense.offset;
    rows.slot = dense.slot;
    return;
  }
  rows.count = 0;
  rows.keys = 0;
  rows.values = 0;
  rows.key_offset = rows.own_key;
  rows.value_offset = rows.own_value;
  rows.slot = rows.own_slot;
  for (const Run& run : page.runs) {
    const uint64_t bits = (live >> run.first_slot) & LowBits(run.length);
    Append(run, head, dense.vector_bytes, bits, rows);
  }
  if (rows.count != std::popcount(live)) {
    DieOfMissingRows(page, head, live, rows.count);
  }
  for (int i = rows.count; i < kPageTokens && rows.count > 0; ++i) {
    rows.own_key[i] = rows.own_key[rows.count - 1];
    rows.own_value[i] = rows.own_value[rows.count - 1];
  }
}

}  // namespace farkv
