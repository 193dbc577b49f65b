// What the plan is fed with, measured on this machine: the kernels on a model's
// own weights and shapes, nodes and link as the worker measures them.
#ifndef FARKV_BENCH_PLAN_RATES_H_
#define FARKV_BENCH_PLAN_RATES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/plan/model_shape.h"
#include "common/plan/step_time.h"
#include "gpu_worker/model/model_config.h"

namespace farkv::bench {

ModelShape ShapeOf(const ModelConfig& config);

struct KernelOptions {
  std::string model;  // directory or .gguf file
  int threads = 1;
  int batch = 1;         // rows of the products, sequences of the attention
  int64_t tokens = 512;  // that each sequence attends to
  int rounds = 5;
};

// Fills in weight bytes, the rates of products and attention (scored, as the
// engine's), and the map's, which reads the same memory. Computing is counted
// with reading: flops are without bound. Medians over the rounds.
absl::StatusOr<Rates> MeasureKernels(const KernelOptions& options);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_PLAN_RATES_H_
