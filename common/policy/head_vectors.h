// The keys or values of one layer and KV head, wherever they lie: pages of a
// node, mapped pages, lines of T0.
#ifndef FARKV_COMMON_POLICY_HEAD_VECTORS_H_
#define FARKV_COMMON_POLICY_HEAD_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/layout/kv_geometry.h"

namespace farkv {

// One pointer per row. Borrowed: pointers and bytes must outlive the call that
// takes them. Nothing needs to be aligned.
struct HeadVectors {
  std::span<const std::byte* const> rows;
  int32_t dim = 0;
  DType dtype = DType::kBf16;
};

// Appends the pointers of `count` rows that lie `stride_bytes` apart.
void AppendRows(const std::byte* first, size_t stride_bytes, int64_t count,
                std::vector<const std::byte*>& rows);

// fp32 copy of a head's vectors for arithmetic over many rows at once: panels
// of 16 rows; in a panel, element c of the 16 rows is contiguous. The rows of
// the last panel beyond `count` are zero.
struct HeadPanels {
  static constexpr int64_t kRows = 16;

  int32_t dim = 0;
  int64_t count = 0;
  std::vector<float> data;

  int64_t num_panels() const { return (count + kRows - 1) / kRows; }
  // `count` rounded up to whole panels: the length of every output over rows.
  int64_t padded() const { return num_panels() * kRows; }
  const float* panel(int64_t index) const {
    return data.data() + index * dim * kRows;
  }
};

HeadPanels MakePanels(const HeadVectors& vectors);

// Row `row` of `vectors` as `dim` floats.
void ReadRow(const HeadVectors& vectors, int64_t row, float* out);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_HEAD_VECTORS_H_
