// Arithmetic of single rows, compiled once per Highway target. Internal to
// kernels/; the operations of elementwise.h and their tests use it.
//
// The loops are plain and element-wise, or sum in a fixed order over 16
// partial sums, without contraction: every target gives the same bits.
#ifndef FARKV_KERNELS_ROW_MATH_H_
#define FARKV_KERNELS_ROW_MATH_H_

#include <cstddef>
#include <cstdint>

namespace farkv {

// out[i] = in[i] / sqrt(mean(in^2) + epsilon) * weight[i]. May be in place.
void RmsNormRow(const float* in, const float* weight, float epsilon,
                size_t width, float* out);

// out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. May be in place.
void SiluMultiplyRow(const float* gate, const float* up, size_t count,
                     float* out);

void AddRow(float* x, const float* y, size_t count);

// Rotates one head of 2 * half elements; cosines and sines are [half].
void RotateHead(float* head, const float* cosines, const float* sines,
                size_t half);

// Round to nearest even, NaN stays NaN (common/base/bf16.h).
void RowToBf16(const float* in, size_t count, uint16_t* out);
void RowFromBf16(const uint16_t* in, size_t count, float* out);

}  // namespace farkv

#endif  // FARKV_KERNELS_ROW_MATH_H_
