// Rows with known content, as a worker would send them.
#ifndef FARKV_TESTS_UNIT_MEMORY_NODE_STORED_ROWS_H_
#define FARKV_TESTS_UNIT_MEMORY_NODE_STORED_ROWS_H_

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/page/bodies.h"
#include "common/page/page_format.h"

namespace farkv {

// Every row of one page: a block of 64 positions.
struct TestPage {
  std::vector<std::byte> block;

  TestPage(const KvGeometry& geometry, uint64_t seed)
      : block(geometry.BlockBytes(kPageTokens)) {
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<std::byte>(SplitMix64At(seed, i));
    }
  }
  std::span<const std::byte> Key(const KvGeometry& geometry, size_t head,
                                 size_t slot) const {
    return {block.data() + geometry.KeyOffset(kPageTokens, head, slot),
            geometry.VectorBytes()};
  }
  std::span<const std::byte> Value(const KvGeometry& geometry, size_t head,
                                   size_t slot) const {
    return {block.data() + geometry.ValueOffset(kPageTokens, head, slot),
            geometry.VectorBytes()};
  }
};

// Calls visit(head, slot) in the order of bodies.h.
template <typename Visitor>
void VisitRows(std::span<const uint64_t> rows, Visitor visit) {
  for (size_t head = 0; head < rows.size(); ++head) {
    for (uint64_t left = rows[head]; left != 0; left &= left - 1) {
      visit(head, static_cast<size_t>(std::countr_zero(left)));
    }
  }
}

inline std::vector<uint32_t> CrcsOf(const KvGeometry& geometry,
                                    const TestPage& page,
                                    std::span<const uint64_t> rows) {
  std::vector<uint32_t> crcs;
  VisitRows(rows, [&](size_t head, size_t slot) {
    crcs.push_back(RowCrc(page.Key(geometry, head, slot),
                          page.Value(geometry, head, slot)));
  });
  return crcs;
}

// Row by row, the obvious way: what GatherRows must give.
inline std::vector<std::byte> PackRows(const KvGeometry& geometry,
                                       const TestPage& page,
                                       std::span<const uint64_t> rows) {
  std::vector<std::byte> packed;
  const auto append = [&packed](std::span<const std::byte> bytes) {
    packed.insert(packed.end(), bytes.begin(), bytes.end());
  };
  for (size_t head = 0; head < rows.size(); ++head) {
    const uint64_t bitmap = rows[head];
    for (size_t slot = 0; slot < 64; ++slot) {
      if ((bitmap >> slot) & 1) append(page.Key(geometry, head, slot));
    }
    for (size_t slot = 0; slot < 64; ++slot) {
      if ((bitmap >> slot) & 1) append(page.Value(geometry, head, slot));
    }
  }
  return packed;
}

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_MEMORY_NODE_STORED_ROWS_H_
