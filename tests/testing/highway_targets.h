// Runs a test body under each Highway target that this build and CPU have.
// For tests only; not while other threads run kernels.
#ifndef FARKV_TESTS_TESTING_HIGHWAY_TARGETS_H_
#define FARKV_TESTS_TESTING_HIGHWAY_TARGETS_H_

#include <functional>

#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "hwy/targets.h"

namespace farkv {

inline void ForEachHighwayTarget(const std::function<void()>& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace farkv

#endif  // FARKV_TESTS_TESTING_HIGHWAY_TARGETS_H_
