#include "common/process/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace farkv {
namespace {

TEST(CpuCountTest, AQuotaIsRoundedUpToWholeCpus) {
  EXPECT_EQ(CpuQuota("200000 100000"), 2);
  EXPECT_EQ(CpuQuota("150000 100000\n"), 2);
  EXPECT_EQ(CpuQuota("1000 100000"), 1);
}

TEST(CpuCountTest, WhatIsNoQuotaLimitsNothing) {
  for (const char* line : {"max 100000", "", "200000", "0 100000", "200000 0",
                           "-1 100000", "200000 100000 7", "2e5 1e5"}) {
    EXPECT_EQ(CpuQuota(line), 0) << line;
  }
}

TEST(CpuCountTest, AThreadBoundToOneCpuHasOne) {
  int64_t unbound = 0, bound = 0;
  std::thread thread([&] {
    unbound = AvailableCpus();
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &mine);
    ASSERT_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
    bound = AvailableCpus();
  });
  thread.join();

  EXPECT_GE(unbound, 1);
  EXPECT_EQ(bound, 1);
}

}  // namespace
}  // namespace farkv
