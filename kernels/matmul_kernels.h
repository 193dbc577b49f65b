// What stands behind matmul.h on the CPU: the packed order, and the kernels
// that multiply one panel of it. For kernels/matmul*.cc, their tests and the
// bench; everything else calls matmul.h.
//
// Packed order: panels of 64 outputs, the last one padded with zero columns.
// kBf16: [N/64][ceil(K/2)][64][2], an odd K padded with a zero; kF32:
// [N/64][K][64]. A panel is read from front to back once for each group of at
// most 6 rows, so M changes how often a weight is loaded and nothing else:
// every output is one accumulator that takes its products in the order of K.
// Quantised types: [N/64][groups] as QuantizedLayout says.
#ifndef FARKV_KERNELS_MATMUL_KERNELS_H_
#define FARKV_KERNELS_MATMUL_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/thread_pool.h"
#include "kernels/matmul.h"

namespace farkv::matmul {

inline constexpr int32_t kPanelColumns = 64;
inline constexpr int32_t kTileRows = 6;  // rows that share a load of weights

enum class Kernel : uint8_t {
  kAvx512Bf16,   // bf16 weights, dot products of bf16 pairs
  kHighwayBf16,  // bf16 weights widened to fp32, any Highway target
  kHighwayF32,   // fp32 weights, any Highway target
  // Quantised weights of any type; all three give the same bits.
  kAvx512Vnni,        // dot products of four bytes
  kAvx2,              // products of byte pairs
  kHighwayQuantized,  // integers widened to fp32, any Highway target
};

// The packed group of a quantised type for the 64 columns of a panel, a
// multiple of 64 bytes: a head of the group's fp16 [64] scales (kQ4_1, kQ4_K:
// then fp16 [64] minima), and each part of 32 elements in turn: int8 [2][64]
// integers of the part (kQ4_K: scales, minima; kQ6_K: scales of its two
// halves), then its quants. Quants are unsigned (QuantOffset). A step is four
// elements of K for all columns, [64][4]:
//   kQ8_0  a byte each, [8 steps]
//   4 bits [4], step s in the low and step s + 4 in the high half
//   kQ6_K  [2]: 2 bits, step s + 2i at bit 2i, then the 4 bits of s and s + 2
struct QuantizedLayout {
  size_t head_bytes = 0;
  size_t part_scale_bytes = 0;
  size_t quant_bytes = 0;
  int32_t num_parts = 1;

  constexpr size_t part_bytes() const { return part_scale_bytes + quant_bytes; }
  constexpr size_t bytes() const {
    return head_bytes + static_cast<size_t>(num_parts) * part_bytes();
  }
};
constexpr QuantizedLayout LayoutOf(WeightType type) {
  switch (type) {
    case WeightType::kQ8_0:
      return {128, 0, 2048, 1};
    case WeightType::kQ4_0:
      return {128, 0, 1024, 1};
    case WeightType::kQ4_1:
      return {256, 0, 1024, 1};
    case WeightType::kQ4_K:
      return {256, 128, 1024, 8};
    case WeightType::kQ6_K:
      return {128, 128, 1536, 8};
    default:
      return {};
  }
}

// Where a step's bytes stand in the quants of a part: its low (or only) bits,
// and the two high bits of kQ6_K.
constexpr size_t HighBytes(size_t step) {
  return step % 2 * 3 * 4 * kPanelColumns;
}
constexpr size_t LowBytes(WeightType type, size_t step) {
  constexpr size_t kStepBytes = 4 * kPanelColumns;
  if (type == WeightType::kQ8_0) return step * kStepBytes;
  if (type != WeightType::kQ6_K) return step % 4 * kStepBytes;
  return HighBytes(step) + (1 + step % 4 / 2) * kStepBytes;
}

// A row of activations for quantised weights: int8 [K], then fp32 scales, one
// per part of 32, then int32 sums of the quants of each half part.
struct QuantizedRowLayout {
  explicit constexpr QuantizedRowLayout(int32_t cols)
      : scales(static_cast<size_t>(cols)),
        sums(scales + static_cast<size_t>(cols) / 32 * sizeof(float)),
        bytes(sums + static_cast<size_t>(cols) / 16 * sizeof(int32_t)) {}
  size_t scales;  // offsets in bytes
  size_t sums;
  size_t bytes;
};
void QuantizeRow(const float* in, int32_t cols, std::byte* row);

// The kernel of this process for weights of `type`; never changes.
Kernel ChooseKernel(WeightType type);

// As the lines of farkv-bench name it: "avx512vnni".
const char* KernelName(Kernel kernel);

// One group of rows times one panel.
struct Tile {
  WeightType type = WeightType::kBf16;
  // [num_rows] rows, `row_stride` bytes apart: bf16 for kAvx512Bf16, fp32
  // for the other plain types (rounded to bf16 already for kHighwayBf16),
  // QuantizedRowLayout for quantised ones; padded as the panel.
  const std::byte* rows = nullptr;
  size_t row_stride = 0;
  const std::byte* panel = nullptr;
  // A quarter of another panel's bytes, to bring into cache meanwhile; null for
  // none. A hint, never dereferenced.
  const std::byte* prefetch = nullptr;
  bool fetches_panel =
      false;  // whether `panel` itself is probably not in cache
  // Steps of K: pairs (kBf16), elements (kF32) or stored groups.
  int32_t depth = 0;
  int32_t num_rows = 0;     // 1 to kTileRows
  int32_t num_columns = 0;  // 1 to kPanelColumns: how many to store
  float* out = nullptr;     // [num_rows][num_columns], out_stride apart
  int64_t out_stride = 0;   // in elements
};

void MultiplyAvx512Bf16(const Tile& tile);  // only where HasAvx512Bf16()
void MultiplyHighwayBf16(const Tile& tile);
void MultiplyHighwayF32(const Tile& tile);
void MultiplyAvx512Vnni(const Tile& tile);  // only where HasAvx512Vnni()
void MultiplyAvx2(const Tile& tile);        // only where HasAvx2()
void MultiplyHighwayQuantized(const Tile& tile);

// Rounds `count` values to bf16, to nearest even. `out` as Tile::rows of the
// kernel the function is named after; the caller pads.
void RoundRowAvx512Bf16(const float* in, int32_t count, uint16_t* out);
void RoundRowHighwayBf16(const float* in, int32_t count, float* out);

size_t PanelBytes(WeightType type, int32_t cols);

// Packs panel `panel_index` of a row-major [rows][cols] matrix into `out`,
// PanelBytes() long.
void PackPanel(WeightType type, const void* host, int32_t rows, int32_t cols,
               int32_t panel_index, std::byte* out);

// Whole products of the same activations on `pool`; the arguments of MatMul
// with plain pointers. All have the same `cols`.
struct Product {
  Kernel kernel = Kernel::kHighwayF32;
  WeightType type = WeightType::kBf16;
  const std::byte* panels = nullptr;
  int32_t rows = 0;  // N
  int32_t cols = 0;  // K
  float* out = nullptr;
};
void Multiply(ThreadPool& pool, const float* activations, int32_t num_rows,
              std::span<const Product> products);

}  // namespace farkv::matmul

#endif  // FARKV_KERNELS_MATMUL_KERNELS_H_
