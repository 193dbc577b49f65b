// The example of ALGORITHMS 12.3 and of the tests of plans: Qwen3-4B, 16,384
// tokens behind a prompt of 1,024, three tenths of the rest in T0.
#ifndef FARKV_TESTS_UNIT_PLAN_QWEN3_4B_H_
#define FARKV_TESTS_UNIT_PLAN_QWEN3_4B_H_

#include "common/plan/model_shape.h"
#include "common/plan/sizing.h"

namespace farkv {

inline ModelShape Qwen3() { return {36, 32, 8, 128, 2560, 9728, 151936}; }

inline Workload Example() {
  Workload workload;
  workload.tokens = 16384;
  workload.prompt_tokens = 1024;
  workload.hbm_ratio = 3000;
  return workload;
}

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_PLAN_QWEN3_4B_H_
