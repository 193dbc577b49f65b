// What stands behind matmul.h on the CPU: the packed order, and the kernels
// that multiply one panel of it. For kernels/matmul*.cc, their tests and the
// bench; everything else calls matmul.h.
//
// Packed order: panels of 64 outputs, the last one padded with zero columns.
// kBf16: [N/64][ceil(K/2)][64][2], an odd K padded with a zero; kF32:
// [N/64][K][64]. A panel is read from front to back once for each group of at
// most 6 rows, so M changes how often a weight is loaded and nothing else:
// every output is one accumulator that takes its products in the order of K.
#ifndef FARKV_KERNELS_MATMUL_KERNELS_H_
#define FARKV_KERNELS_MATMUL_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "common/base/thread_pool.h"
#include "kernels/matmul.h"

namespace farkv::matmul {

inline constexpr int32_t kPanelColumns = 64;
inline constexpr int32_t kTileRows = 6;  // rows that share a load of weights

enum class Kernel : uint8_t {
  kAvx512Bf16,   // bf16 weights, dot products of bf16 pairs
  kHighwayBf16,  // bf16 weights widened to fp32, any Highway target
  kHighwayF32,   // fp32 weights, any Highway target
};

// The kernel of this process for weights of `type`; never changes.
Kernel ChooseKernel(WeightType type);

// One group of rows times one panel.
struct Tile {
  // [num_rows] rows, `row_stride` bytes apart: bf16 for kAvx512Bf16, fp32
  // otherwise (rounded to bf16 already for kHighwayBf16); padded as the panel.
  const std::byte* rows = nullptr;
  size_t row_stride = 0;
  const std::byte* panel = nullptr;
  // Bytes of another panel to bring into cache meanwhile, 64 per step of K
  // from `prefetch` on; null for none. A hint, never dereferenced.
  const std::byte* prefetch = nullptr;
  int32_t depth = 0;        // steps of K: pairs (kBf16) or elements (kF32)
  int32_t num_rows = 0;     // 1 to kTileRows
  int32_t num_columns = 0;  // 1 to kPanelColumns: how many to store
  float* out = nullptr;     // [num_rows][num_columns], out_stride apart
  int64_t out_stride = 0;   // in elements
};

void MultiplyAvx512Bf16(const Tile& tile);  // only where HasAvx512Bf16()
void MultiplyHighwayBf16(const Tile& tile);
void MultiplyHighwayF32(const Tile& tile);

// Rounds `count` values to bf16, to nearest even. `out` as Tile::rows of the
// kernel the function is named after; the caller pads.
void RoundRowAvx512Bf16(const float* in, int32_t count, uint16_t* out);
void RoundRowHighwayBf16(const float* in, int32_t count, float* out);

size_t PanelBytes(WeightType type, int32_t cols);

// Packs panel `panel_index` of a row-major [rows][cols] matrix into `out`,
// PanelBytes() long.
void PackPanel(WeightType type, const void* host, int32_t rows, int32_t cols,
               int32_t panel_index, std::byte* out);

// A whole product on `pool`; the arguments of MatMul with plain pointers.
struct Product {
  const float* activations = nullptr;
  int32_t num_rows = 0;
  const std::byte* panels = nullptr;
  int32_t rows = 0;  // N
  int32_t cols = 0;  // K
  float* out = nullptr;
};
void Multiply(ThreadPool& pool, Kernel kernel, const Product& product);

}  // namespace farkv::matmul

#endif  // FARKV_KERNELS_MATMUL_KERNELS_H_
