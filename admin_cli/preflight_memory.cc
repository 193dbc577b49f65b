#include <algorithm>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "admin_cli/preflight.h"
#include "common/base/parse.h"

namespace farkv {
namespace {

using Level = Finding::Level;

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kSlab = uint64_t{64} << 20;  // of a node's pool
// Files of a process besides its slabs: sockets of peers, UCX, gRPC.
constexpr uint64_t kOtherFiles = 256;
constexpr int kCapIpcLock = 14;

// To be read by people, in whole MiB.
std::string ShownBytes(uint64_t bytes) {
  return FormatBytes(bytes >> 20 << 20);
}

// The number behind "Name:" in a file of such lines; nullopt when there is
// none.
std::optional<uint64_t> Field(const std::string& file,
                              const std::string& name) {
  std::smatch match;
  if (!std::regex_search(file, match,
                         std::regex("(^|\n)" + name + ":\\s+(\\d+)"))) {
    return std::nullopt;
  }
  uint64_t value = 0;
  if (!absl::SimpleAtoi(match.str(2), &value)) return std::nullopt;
  return value;
}

// The hard limit, to which a node raises its own, of a line of
// /proc/self/limits; nullopt: unlimited or unknown.
std::optional<uint64_t> Limit(const PreflightSystem& system,
                              const std::string& name) {
  const std::string limits = ReadFact(system, "/proc/self/limits");
  std::smatch match;
  uint64_t value = 0;
  if (!std::regex_search(limits, match,
                         std::regex(name + "\\s+\\w+\\s+(\\d+)")) ||
      !absl::SimpleAtoi(match.str(1), &value)) {
    return std::nullopt;
  }
  return value;
}

// What the control group, of either version, leaves; nullopt: all there is.
std::optional<uint64_t> MemoryLimit(const PreflightSystem& system) {
  const std::string group = "/sys/fs/cgroup";
  const std::pair<std::string, std::string> versions[] = {
      {group + "/memory.max", group + "/memory.current"},
      {group + "/memory/memory.limit_in_bytes",
       group + "/memory/memory.usage_in_bytes"}};
  for (const auto& [limit_path, usage_path] : versions) {
    uint64_t limit = 0, usage = 0;
    // Version 1 says "no limit" as a number beyond any memory.
    if (absl::SimpleAtoi(ReadFact(system, limit_path), &limit) &&
        limit < (uint64_t{1} << 60) &&
        absl::SimpleAtoi(ReadFact(system, usage_path), &usage)) {
      return limit - std::min(limit, usage);
    }
  }
  return std::nullopt;
}

void CheckPoolFits(uint64_t pool, uint64_t available, uint64_t huge,
                   const PreflightSystem& system,
                   std::vector<Finding>& findings) {
  const auto limit = MemoryLimit(system);
  const uint64_t room = available + huge;
  Finding finding{"memory", Level::kOk,
                  absl::StrCat(ShownBytes(room), " available, ",
                               FormatBytes(pool), " wanted"),
                  ""};
  if (limit && *limit + huge < pool) {
    finding.level = Level::kFail;
    finding.found =
        absl::StrCat("the limit of this container leaves ", ShownBytes(*limit),
                     ", the pools want ", FormatBytes(pool));
    finding.fix =
        "raise the memory limit to the pools and a quarter more, or lower "
        "--t1-bytes";
  } else if (room < pool) {
    finding.level = Level::kFail;
    finding.fix = "lower --t1-bytes (--t2-bytes), or use a larger machine";
  } else if (room - pool < pool / 8) {
    finding.level = Level::kWarn;
    finding.fix = "leave an eighth of the pools for everything else";
  }
  findings.push_back(std::move(finding));
}

void CheckHugePages(uint64_t pool, uint64_t free_pages,
                    const PreflightSystem& system,
                    std::vector<Finding>& findings) {
  const uint64_t wanted = (pool + kHugePage - 1) / kHugePage;
  const std::string shmem =
      ReadFact(system, "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const bool on_request = absl::StrContains(shmem, "[advise]") ||
                          absl::StrContains(shmem, "[always]") ||
                          absl::StrContains(shmem, "[within_size]");
  Finding finding{
      "huge-pages", Level::kOk,
      absl::StrCat(free_pages, " of 2 MiB free, ", wanted, " wanted"), ""};
  if (free_pages < wanted && on_request) {
    absl::StrAppend(&finding.found, "; transparent ones on request");
  } else if (free_pages < wanted) {
    finding.level = Level::kWarn;
    finding.fix = absl::StrCat(
        "sysctl vm.nr_hugepages=", wanted,
        ", or echo advise > "
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled; without them the "
        "pool works on 4 KiB pages, slower");
  }
  findings.push_back(std::move(finding));
}

// Memory is locked for RDMA only, whose registration pins the pool.
void CheckLockedMemory(uint64_t pool, bool rdma, const PreflightSystem& system,
                       std::vector<Finding>& findings) {
  const auto limit = Limit(system, "Max locked memory");
  const std::string status = ReadFact(system, "/proc/self/status");
  std::smatch match;
  uint64_t capabilities = 0;
  if (std::regex_search(status, match, std::regex("CapEff:\\s+(\\w+)")) &&
      !absl::SimpleHexAtoi(match.str(1), &capabilities)) {
    capabilities = 0;
  }
  const bool may_lock = ((capabilities >> kCapIpcLock) & 1) != 0;
  Finding finding{"locked-memory", Level::kOk,
                  limit ? FormatBytes(*limit) : "unlimited", ""};
  if (may_lock) {
    absl::StrAppend(&finding.found, "; CAP_IPC_LOCK lifts the limit");
  } else if (limit && !rdma) {
    absl::StrAppend(&finding.found, "; no matter without RDMA");
  } else if (limit && *limit < pool) {
    finding.level = Level::kFail;
    absl::StrAppend(&finding.found, ", RDMA locks ", FormatBytes(pool));
    finding.fix =
        "ulimit -l unlimited (LimitMEMLOCK=infinity of systemd), or give a "
        "container the capability IPC_LOCK";
  }
  findings.push_back(std::move(finding));
}

void CheckOpenFiles(uint64_t pool, const PreflightSystem& system,
                    std::vector<Finding>& findings) {
  const auto limit = Limit(system, "Max open files");
  const uint64_t wanted = pool / kSlab + kOtherFiles;
  Finding finding{"open-files", Level::kOk,
                  absl::StrCat(limit ? absl::StrCat(*limit) : "unlimited", ", ",
                               wanted, " wanted"),
                  ""};
  if (limit && *limit < wanted) {
    finding.level = Level::kWarn;
    finding.fix = absl::StrCat("ulimit -n ", wanted,
                               " (LimitNOFILE= of systemd): a pool has a file "
                               "for each 64 MiB");
  }
  findings.push_back(std::move(finding));
}

}  // namespace

void CheckMemory(const PreflightOptions& options, const PreflightSystem& system,
                 std::vector<Finding>& findings) {
  const std::string facts = ReadFact(system, "/proc/meminfo");
  const auto available = Field(facts, "MemAvailable");  // KiB
  if (!available) {
    findings.push_back({"memory", Level::kWarn,
                        "/proc/meminfo does not say what is available",
                        "mount /proc"});
    return;
  }
  const uint64_t huge_free = Field(facts, "HugePages_Free").value_or(0);
  const bool two_mib = Field(facts, "Hugepagesize").value_or(0) == 2048;
  const uint64_t free_pages = two_mib ? huge_free : 0;
  CheckPoolFits(options.pool_bytes, *available * 1024, free_pages * kHugePage,
                system, findings);
  CheckHugePages(options.pool_bytes, free_pages, system, findings);
  CheckLockedMemory(options.pool_bytes, options.rdma, system, findings);
  CheckOpenFiles(options.pool_bytes, system, findings);
}

void CheckNuma(const PreflightOptions& options, const PreflightSystem& system,
               std::vector<Finding>& findings) {
  std::vector<std::string> nodes;
  for (const auto& name : ListFacts(system, "/sys/devices/system/node")) {
    if (std::regex_match(name, std::regex("node\\d+"))) nodes.push_back(name);
  }
  const std::string wanted = absl::StrCat("node", options.numa_node);
  const bool known =
      std::find(nodes.begin(), nodes.end(), wanted) != nodes.end();
  Finding finding{"numa", Level::kOk,
                  absl::StrCat(std::max<size_t>(nodes.size(), 1), " NUMA node",
                               nodes.size() > 1 ? "s" : ""),
                  ""};
  if (options.numa_node >= 0 && !known) {
    finding.level = Level::kFail;
    absl::StrAppend(&finding.found, ", none of them ", options.numa_node);
    finding.fix = "give --numa-node one that /sys/devices/system/node has";
  } else if (options.numa_node >= 0) {
    const auto free = Field(
        ReadFact(system, "/sys/devices/system/node/" + wanted + "/meminfo"),
        absl::StrCat("Node ", options.numa_node, " MemFree"));
    if (free) {
      absl::StrAppend(&finding.found, ", ", ShownBytes(*free * 1024),
                      " free on ", options.numa_node);
    }
    if (free && *free * 1024 < options.pool_bytes) {
      finding.level = Level::kWarn;
      finding.fix =
          "drop the page cache, or divide the pool among node processes, one "
          "for each NUMA node";
    }
  } else if (nodes.size() > 1) {
    finding.level = Level::kWarn;
    finding.fix =
        "run one memory node for each NUMA node, each with --numa-node";
  }
  findings.push_back(std::move(finding));
}

}  // namespace farkv
