#include "memory_node/pool/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/parse.h"

namespace farkv {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
// For listeners, connections and descriptors on their way to workers.
constexpr uint64_t kOtherDescriptors = 256;

// MemAvailable of /proc/meminfo, which counts in KiB.
uint64_t MachineBytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string name, unit;
  uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10;
    std::getline(file, unit);
  }
  return kUnlimited;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // missing, or "max"
}

uint64_t GroupBytes(const std::string& limit_path,
                    const std::string& usage_path) {
  const std::optional<uint64_t> limit = ReadNumber(limit_path);
  const std::optional<uint64_t> usage = ReadNumber(usage_path);
  if (!limit.has_value() || !usage.has_value()) return kUnlimited;
  return *limit - std::min(*limit, *usage);
}

// Free and not promised to a mapping.
uint64_t HugePageBytes(const std::string& root) {
  const std::string pages = root + "/sys/kernel/mm/hugepages/hugepages-2048kB";
  const uint64_t free = ReadNumber(pages + "/free_hugepages").value_or(0);
  const uint64_t taken = ReadNumber(pages + "/resv_hugepages").value_or(0);
  return (free - std::min(free, taken)) * kHugePageBytes;
}

}  // namespace

uint64_t AvailableMemoryBytes(bool huge_pages, const std::string& root) {
  const std::string group = root + "/sys/fs/cgroup";
  const uint64_t bytes =
      std::min({MachineBytes(root),
                GroupBytes(group + "/memory.max", group + "/memory.current"),
                GroupBytes(group + "/memory/memory.limit_in_bytes",
                           group + "/memory/memory.usage_in_bytes")});
  if (bytes == kUnlimited) return 0;
  return bytes + (huge_pages ? HugePageBytes(root) : 0);
}

absl::Status CheckPoolFits(uint64_t pool_bytes, uint64_t available) {
  if (available == 0 || pool_bytes <= available) return absl::OkStatus();
  constexpr uint64_t kMiB = 1 << 20;
  return absl::ResourceExhaustedError(absl::StrCat(
      "a pool of ", FormatBytes(pool_bytes), " does not fit: ",
      FormatBytes(available / kMiB * kMiB), " of memory are available here"));
}

uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnlimited;
  const rlimit wanted{limit.rlim_max, limit.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &wanted) == 0) limit = wanted;
  return limit.rlim_cur;
}

absl::Status CheckDescriptorsSuffice(uint64_t pool_bytes, uint64_t slab_bytes,
                                     uint64_t limit) {
  const uint64_t slabs = pool_bytes / slab_bytes;
  const uint64_t allowed = limit - std::min(limit, kOtherDescriptors);
  if (slabs <= allowed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a pool of ", FormatBytes(pool_bytes), " has ", slabs,
      " slabs with a descriptor each, and ", kOtherDescriptors,
      " are kept for connections; this process may have ", limit,
      " open files, enough for ", FormatBytes(allowed * slab_bytes),
      ": raise the limit (ulimit -n)"));
}

}  // namespace farkv
