// oneDNN's matrix product, as a yardstick: weights in the order it prefers,
// output fp32. Of bf16 with activations bf16 already, where oneDNN has it for
// this CPU; of the same numbers in f32 elsewhere.
#ifndef FARKV_BENCH_ONEDNN_MATMUL_H_
#define FARKV_BENCH_ONEDNN_MATMUL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace farkv::bench {

// Thread-compatible. Runs on oneDNN's own threads.
class OneDnnMatMul {
 public:
  // `weights` are row-major [rows][cols] bf16 matrices and are copied; every
  // product is out[num_rows][rows] = activations[num_rows][cols] * weight^T.
  static absl::StatusOr<std::unique_ptr<OneDnnMatMul>> Create(
      const std::vector<const uint16_t*>& weights, int32_t rows, int32_t cols,
      int num_threads);
  ~OneDnnMatMul();

  // Fixes the number of rows and the activations (bf16) of later Run() calls.
  absl::Status SetActivations(const std::vector<uint16_t>& activations);

  // One product with weight `index`; returns when it is done.
  absl::Status Run(size_t index);

  const std::vector<float>& out() const;
  // "oneDNN bf16" or "oneDNN f32".
  const char* name() const;
  // What oneDNN calls the implementation it chose.
  std::string implementation() const;

 private:
  struct State;
  explicit OneDnnMatMul(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ONEDNN_MATMUL_H_
