// The geometry of a sequence's KV cache: the only place where shapes turn into
// byte offsets. A row is K and V of one token for one layer and KV head; a
// block of n positions of one layer (a page's payload with n = 64, a T0 line
// with n = g, a staging piece) is head-major:
//
//   for each KV head: [n keys][n values], each key or value head_dim elements
//
// Plain values; thread-compatible. DESIGN 2 and 13.
#ifndef FARKV_COMMON_LAYOUT_KV_GEOMETRY_H_
#define FARKV_COMMON_LAYOUT_KV_GEOMETRY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace farkv {

// Positions of a page; also bits of a bitmap and slots of a leaf.
inline constexpr int kPageTokens = 64;

// Storage type of the elements of a row. Values are part of the formats.
enum class DType : uint8_t { kBf16 = 1, kF32 = 2 };

// Where attention reads a row from. Values are part of the formats.
enum class Tier : uint8_t {
  kT0 = 0,  // HBM: device memory of the worker (host memory on the CPU)
  kT1 = 1,  // DDR of a memory node, full precision
  kT2 = 2,  // DDR of a memory node, 8 (or 4) bit
  kT3 = 3,  // evicted, gone
};

const char* DTypeName(DType dtype);

struct KvGeometry {
  int32_t num_layers = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;  // elements of a key, and of a value
  DType dtype = DType::kBf16;

  friend bool operator==(const KvGeometry&, const KvGeometry&) = default;

  // INVALID_ARGUMENT naming the field when a number is out of range: 1..1024
  // layers, 1..256 heads, head_dim 16..512 and a multiple of 16.
  absl::Status Validate() const;
  std::string ToString() const;

  size_t ElementBytes() const { return dtype == DType::kBf16 ? 2 : 4; }
  // One key, or one value.
  size_t VectorBytes() const {
    return static_cast<size_t>(head_dim) * ElementBytes();
  }
  // One row: key and value of one head.
  size_t RowBytes() const { return 2 * VectorBytes(); }
  // Distance between two heads of a block of `rows` positions.
  size_t HeadStride(size_t rows) const { return rows * RowBytes(); }
  // A block of `rows` positions, all heads of one layer.
  size_t BlockBytes(size_t rows) const {
    return static_cast<size_t>(num_kv_heads) * HeadStride(rows);
  }
  // Offsets inside a block of `rows` positions.
  size_t KeyOffset(size_t rows, size_t head, size_t row) const {
    return head * HeadStride(rows) + row * VectorBytes();
  }
  size_t ValueOffset(size_t rows, size_t head, size_t row) const {
    return KeyOffset(rows, head, row) + rows * VectorBytes();
  }
};

}  // namespace farkv

#endif  // FARKV_COMMON_LAYOUT_KV_GEOMETRY_H_
