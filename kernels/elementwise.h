// Row operations of a decoder layer. A row's bits depend on that row alone; a
// reduction has one fixed order. fp32 unless said otherwise; all pointers are
// device, [rows][width] row-major and dense. Thread-safe on different streams.
#ifndef FARKV_KERNELS_ELEMENTWISE_H_
#define FARKV_KERNELS_ELEMENTWISE_H_

#include <cstdint>
#include <span>

#include "common/layout/kv_geometry.h"
#include "kernels/matmul.h"
#include "kernels/stream.h"

namespace farkv {

// out[r] = in[r] / sqrt(mean(in[r]^2) + epsilon) * weight. May be in place.
// RMSNorm, arXiv 1910.07467.
void RmsNorm(Stream& stream, const float* in, const float* weight,
             float epsilon, int32_t num_rows, int32_t width, float* out);

// Rotates num_heads heads of each row in place by the row's position: element
// i pairs with i + head_dim / 2 (Hugging Face order); frequencies[i] radians
// per position, [head_dim / 2] for all rows or [rows][head_dim / 2], host
// memory read before return. Rotated elements are multiplied by
// `attention_factor` (YaRN, arXiv 2309.00071). RoPE, arXiv 2104.09864. Angles
// are computed in double by one code on every backend.
void Rope(Stream& stream, float* heads, std::span<const int64_t> positions,
          std::span<const double> frequencies, int32_t num_heads,
          int32_t head_dim, double attention_factor = 1.0);

// out = silu(gate) * up, element-wise over `count` elements. May alias gate.
void SiluMultiply(Stream& stream, const float* gate, const float* up,
                  int64_t count, float* out);

// x += y, element-wise.
void Add(Stream& stream, float* x, const float* y, int64_t count);

// x[r][c] += bias[c].
void AddBias(Stream& stream, float* x, const float* bias, int32_t num_rows,
             int32_t width);

// A row-major [vocab][width] embedding table as it is stored, not packed;
// quantised rows are whole groups and are widened when they are looked up.
struct EmbeddingTable {
  WeightType type = WeightType::kBf16;
  int32_t vocab = 0;
  int32_t width = 0;
  DeviceBuffer data;
};

// out[r] = table[tokens[r]], widened to fp32. Tokens were range-checked.
// `tokens` is host memory, read before return.
void Embed(Stream& stream, const EmbeddingTable& table,
           std::span<const int32_t> tokens, float* out);

// Where the new rows' K and V go: row r of the call has its key for KV head h
// at keys + h * head_stride, its value likewise. Device memory.
struct RowTarget {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  size_t head_stride = 0;
};

// Rounds new K and V ([rows][num_kv_heads][head_dim]) to the KV dtype and
// writes them to `targets`, one per row (host memory, read before return).
void AppendRows(Stream& stream, const KvGeometry& geometry, const float* keys,
                const float* values, std::span<const RowTarget> targets);

// Copies many small pieces in stream order (T0 lines to and from staging).
struct CopyPiece {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
};
void CopyPieces(Stream& stream, std::span<const CopyPiece> pieces);

}  // namespace farkv

#endif  // FARKV_KERNELS_ELEMENTWISE_H_
