// Row-independent matrix products: out = activations * weight^T.
//
// Goal: a row's bits depend on that row and the weight only, never on M, the
// other rows or the thread count, because prefill and decode must agree.
// One kernel per weight for every M, one accumulator per output, K in fixed
// order (CPU_KERNELS 4). Weights keep the size they are stored in: quantised
// ones are never widened in memory. Thread-safe on different streams.
#ifndef FARKV_KERNELS_MATMUL_H_
#define FARKV_KERNELS_MATMUL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/stream.h"
#include "kernels/weight_type.h"

namespace farkv {

// A weight in the kernel's packed order. Owns device memory.
// kBf16: activations are rounded to bf16 once, products accumulate in fp32;
// with AVX-512 BF16, subnormal values count as zero.
// Quantised types: each row of activations is quantised once to int8 in parts
// of 32, scale max|x| / 127 in fp32, as llama.cpp does; integer dot products of
// a part are exact and are scaled and added up in fp32 in the order of K, the
// same bits on every CPU. A part below 2^-100 counts as zero; one with an
// infinity or a NaN makes its row NaN.
struct PackedWeight {
  WeightType type = WeightType::kBf16;
  int32_t rows = 0;  // N, outputs
  int32_t cols = 0;  // K, inputs
  DeviceBuffer data;
};

// Packs a row-major [rows][cols] host matrix stored as `type`. Any shape with
// rows, cols >= 1 whose rows are whole groups of the type (GroupElements),
// else INVALID_ARGUMENT. `host` may have any alignment (a mapped file promises
// none) and has been read on return.
// RESOURCE_EXHAUSTED when the device has no room.
absl::StatusOr<PackedWeight> PackWeight(Device& device, Stream& stream,
                                        WeightType type, const void* host,
                                        int32_t rows, int32_t cols);

// out[m][n] = sum_k activations[m][k] * weight[n][k], fp32.
// `out` must not overlap `activations`; both are device memory.
void MatMul(Stream& stream, const float* activations, int32_t num_rows,
            const PackedWeight& weight, float* out);

// Several products of the same activations, like a layer's queries, keys and
// values: the same bits as one by one, in less time. All weights have the same
// number of columns; `outputs` is host memory, read before return; the weights
// it points to stay.
struct MatMulOutput {
  const PackedWeight* weight = nullptr;
  float* out = nullptr;
};
void MatMul(Stream& stream, const float* activations, int32_t num_rows,
            std::span<const MatMulOutput> outputs);

}  // namespace farkv

#endif  // FARKV_KERNELS_MATMUL_H_
