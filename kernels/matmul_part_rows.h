// What the kernels with integer instructions need of the activations for one
// part of 32 elements. For kernels/matmul_avx*.cc.
#ifndef FARKV_KERNELS_MATMUL_PART_ROWS_H_
#define FARKV_KERNELS_MATMUL_PART_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/matmul_kernels.h"
#include "kernels/quantized_groups.h"

namespace farkv::matmul {

// Of kRows rows, part `index` of each.
template <size_t kRows>
struct PartRows {
  const std::byte* quants;  // of the first row
  size_t stride;
  float scales[kRows];
  int32_t half_sums[kRows][2];

  PartRows(const Tile& tile, const QuantizedRowLayout& layout, size_t index)
      : quants(tile.rows + index * kPartElements), stride(tile.row_stride) {
    for (size_t r = 0; r < kRows; ++r) {
      const std::byte* row = tile.rows + r * stride;
      __builtin_memcpy(&scales[r], row + layout.scales + index * sizeof(float),
                       sizeof(float));
      __builtin_memcpy(half_sums[r],
                       row + layout.sums + index * sizeof(half_sums[r]),
                       sizeof(half_sums[r]));
    }
  }

  int32_t sum(size_t row) const {
    return half_sums[row][0] + half_sums[row][1];
  }
};

}  // namespace farkv::matmul

#endif  // FARKV_KERNELS_MATMUL_PART_ROWS_H_
