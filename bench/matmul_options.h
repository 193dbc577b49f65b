// What the parts of farkv-bench matmul share.
#ifndef FARKV_BENCH_MATMUL_OPTIONS_H_
#define FARKV_BENCH_MATMUL_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace farkv::bench {

struct MatMulOptions {
  int threads = 1;
  int rounds = 21;
  std::string shape = "2048x2048";  // K x N
  bool smoke = false;

  int NumRounds() const { return smoke ? 1 : rounds; }
};

struct MatMulShape {
  int32_t rows = 0;  // N
  int32_t cols = 0;  // K
};

// INVALID_ARGUMENT when a number is out of range or the shape is none.
absl::StatusOr<MatMulShape> CheckOptions(const MatMulOptions& options);

// Each quantised type that fits the shape: one row against a plain read of its
// packed bytes, more rows against our bf16 product of the same shape.
absl::Status RunQuantizedMatMul(const MatMulOptions& options);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_MATMUL_OPTIONS_H_
