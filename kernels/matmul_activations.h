// The activations of one group of products, as each kernel wants them. For
// kernels/matmul.cc.
#ifndef FARKV_KERNELS_MATMUL_ACTIVATIONS_H_
#define FARKV_KERNELS_MATMUL_ACTIVATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/thread_pool.h"
#include "kernels/matmul_kernels.h"

namespace farkv::matmul {

// Rows are converted at most this many at a time, which bounds the scratch to
// 2 MiB at K = 4096; enough that weights read again for the next rows cost
// nothing.
inline constexpr int32_t kScratchRows = 256;

// [num_rows] rows as Tile::rows, `stride` bytes apart.
struct ConvertedRows {
  const std::byte* rows = nullptr;
  size_t stride = 0;
};

// Converts rows when a kernel asks for them first. The converted rows lie in
// scratch of the calling thread, one for each form, until the next object of
// this thread converts to the same form; other threads may read them.
class Activations {
 public:
  // [num_rows][cols], at most kScratchRows rows; borrowed.
  Activations(const float* activations, int32_t num_rows, int32_t cols)
      : activations_(activations), num_rows_(num_rows), cols_(cols) {}

  ConvertedRows For(Kernel kernel, ThreadPool& pool);

 private:
  // What kernels that share a form have in common.
  enum Form : uint8_t { kBf16, kRoundedF32, kQuantized, kNumForms };
  static Form FormOf(Kernel kernel);
  size_t RowBytes(Form form) const;
  void ConvertRow(Form form, int32_t row, std::byte* out) const;
  ConvertedRows Convert(Form form, ThreadPool& pool) const;

  const float* activations_;
  int32_t num_rows_;
  int32_t cols_;
  std::array<ConvertedRows, kNumForms> converted_;
};

}  // namespace farkv::matmul

#endif  // FARKV_KERNELS_MATMUL_ACTIVATIONS_H_
