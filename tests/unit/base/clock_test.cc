#include "common/base/clock.h"

#include "gtest/gtest.h"

namespace farkv {
namespace {

TEST(ClockTest, BoottimeNeverRunsBackwards) {
  const Clock& clock = Clock::Boottime();
  absl::Time last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace farkv
