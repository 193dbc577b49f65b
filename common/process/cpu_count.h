// How many CPUs this process may use: the default number of kernel threads.
#ifndef FARKV_COMMON_PROCESS_CPU_COUNT_H_
#define FARKV_COMMON_PROCESS_CPU_COUNT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace farkv {

// The quota of a cgroup v2 `cpu.max` line ("200000 100000": microseconds per
// period) in whole CPUs, rounded up and at least 1; 0 where there is none
// ("max 100000") or the line cannot be read.
int64_t CpuQuota(absl::string_view cpu_max);

// The CPUs of the affinity mask, or the quota of the process's own cgroup where
// that is less, as in a pod with a CPU limit: more threads than that are
// stopped in mid-period. At least 1. A parent cgroup's quota is not seen.
int64_t AvailableCpus();

}  // namespace farkv

#endif  // FARKV_COMMON_PROCESS_CPU_COUNT_H_
