// The name of the Highway target that dynamic dispatch chooses, asked of the
// dispatch itself so that it cannot disagree with the kernels.
#include <string>

#include "kernels/cpu_features.h"
#include "kernels/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kernel_target.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farkv {
namespace HWY_NAMESPACE {

const char* ThisTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace farkv
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace farkv {

// Raised with every change of the arithmetic: exponential, merge, order of a
// reduction. Two releases with equal revisions give equal bits, which
// tests/golden/arithmetic_k1.txt holds.
constexpr char kArithmeticRevision[] = "+k1";

HWY_EXPORT(ThisTarget);

std::string KernelTarget() {
  std::string target = HWY_DYNAMIC_DISPATCH(ThisTarget)();
  if (HasAvx512Bf16()) target += "+avx512bf16";
  return target + kArithmeticRevision;
}

}  // namespace farkv
#endif  // HWY_ONCE
