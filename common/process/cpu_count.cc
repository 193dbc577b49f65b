#include "common/process/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace farkv {
namespace {

int64_t AffinityCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace

int64_t CpuQuota(absl::string_view cpu_max) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(cpu_max, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t quota = 0, period = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || quota < 1 || period < 1) {
    return 0;
  }
  return quota / period + (quota % period == 0 ? 0 : 1);
}

int64_t AvailableCpus() {
  // "0::/path" of cgroup v2; "/" inside a pod, whose files are at the root.
  const std::string own = FirstLine("/proc/self/cgroup");
  absl::string_view path = own;
  const bool v2 = absl::ConsumePrefix(&path, "0::");
  const int64_t quota =
      v2 ? CpuQuota(FirstLine(absl::StrCat("/sys/fs/cgroup", path, "/cpu.max")))
         : 0;
  return quota == 0 ? AffinityCpus() : std::min(quota, AffinityCpus());
}

}  // namespace farkv
