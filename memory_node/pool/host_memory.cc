#include "memory_node/pool/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/parse.h"

namespace farkv {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

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

}  // namespace

uint64_t AvailableMemoryBytes(const std::string& root) {
  const std::string group = root + "/sys/fs/cgroup";
  const uint64_t bytes =
      std::min({MachineBytes(root),
                GroupBytes(group + "/memory.max", group + "/memory.current"),
                GroupBytes(group + "/memory/memory.limit_in_bytes",
                           group + "/memory/memory.usage_in_bytes")});
  return bytes == kUnlimited ? 0 : bytes;
}

absl::Status CheckPoolFits(uint64_t pool_bytes, uint64_t available) {
  if (available == 0 || pool_bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a pool of ", FormatBytes(pool_bytes), " does not fit: ",
                   FormatBytes(available), " of memory are available here"));
}

}  // namespace farkv
