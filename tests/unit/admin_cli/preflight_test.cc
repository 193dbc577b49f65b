// Each finding of farkvctl preflight, on machines that are made up: a folder
// stands for "/".
#include "admin_cli/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Level = Finding::Level;

constexpr uint64_t kGiB = uint64_t{1} << 30;
const char* const kInfiniband = "/sys/class/infiniband/mlx5_0/ports/1";

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    std::string path =
        std::filesystem::temp_directory_path() / "preflightXXXXXX";
    system_.root = mkdtemp(path.data());
    system_.can_write = [this](const std::string&) { return writable_; };
    system_.try_listen = [this](const std::string& address) {
      return address == taken_ ? absl::UnavailableError("Address in use")
                               : absl::OkStatus();
    };
    system_.environment =
        [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    };
    system_.clock_is_synchronised = [this] { return synchronised_; };
    SetMemory(64, 0);
    SetLimits(20000, "unlimited");
    Write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
          "always [advise] never");
    MakeFolder("/sys/devices/system/node/node0");
    Write("/sys/devices/system/clocksource/clocksource0/current_clocksource",
          "tsc\n");
    Write("/usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0", "");
    MakeFolder("/sys/class/net/eth0");
    options_.pool_bytes = kGiB;
  }
  ~PreflightTest() override { std::filesystem::remove_all(system_.root); }

  void MakeFolder(const std::string& path) {
    std::filesystem::create_directories(system_.root + path);
  }
  void Write(const std::string& path, const std::string& text) {
    MakeFolder(std::filesystem::path(path).parent_path());
    std::ofstream(system_.root + path) << text;
  }
  void SetMemory(uint64_t available_gib, uint64_t huge_pages) {
    Write("/proc/meminfo", absl::StrCat("MemTotal:  999 kB\nMemAvailable:  ",
                                        available_gib * 1024 * 1024,
                                        " kB\nHugePages_Free:  ", huge_pages,
                                        "\nHugepagesize:   2048 kB\n"));
  }
  void SetLimits(uint64_t files, const std::string& locked) {
    Write("/proc/self/limits",
          absl::StrCat("Limit  Soft Limit  Hard Limit  Units\n"
                       "Max open files            1024 ",
                       files, " files\nMax locked memory         8192 ", locked,
                       " bytes\n"));
  }
  // An active RoCE port with one GID.
  void AddRdma() {
    const std::string port = kInfiniband;
    Write(port + "/state", "4: ACTIVE\n");
    Write(port + "/link_layer", "Ethernet\n");
    Write(port + "/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    Write(port + "/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    Write(port + "/gid_attrs/types/3", "RoCE v2\n");
    Write("/dev/infiniband/uverbs0", "");
  }

  // Of one check; there must be just one of that name.
  Finding Of(const std::string& check) {
    std::vector<Finding> found;
    for (Finding& finding : Preflight(options_, system_)) {
      // Whatever is not right comes with something to do.
      EXPECT_EQ(finding.level == Level::kOk, finding.fix.empty())
          << finding.check << ": " << finding.found;
      if (finding.check == check) found.push_back(std::move(finding));
    }
    EXPECT_THAT(found, SizeIs(1)) << check;
    return found.empty() ? Finding{} : found.front();
  }
  void Expect(const std::string& check, Level level,
              const ::testing::Matcher<std::string>& found,
              const ::testing::Matcher<std::string>& fix) {
    const Finding finding = Of(check);
    EXPECT_EQ(finding.level, level) << finding.found << "; " << finding.fix;
    EXPECT_THAT(finding.found, found);
    EXPECT_THAT(finding.fix, fix);
  }

  PreflightSystem system_;
  PreflightOptions options_;
  bool writable_ = true;
  bool synchronised_ = true;
  std::string taken_;
  std::map<std::string, std::string> environment_;
};

TEST_F(PreflightTest, AMachineThatIsReadyIsFoundSo) {
  options_.map_dir = "/run/farkv";
  MakeFolder("/run/farkv");
  options_.listen = {"127.0.0.1:7401"};
  options_.data_device = "eth0";

  for (const Finding& finding : Preflight(options_, system_)) {
    EXPECT_EQ(finding.level, Level::kOk)
        << finding.check << ": " << finding.found;
  }
}

TEST_F(PreflightTest, AWorkerAloneNeedsNoPool) {
  options_.pool_bytes = 0;
  for (const Finding& finding : Preflight(options_, system_)) {
    EXPECT_NE(finding.check, "memory");
    EXPECT_NE(finding.check, "huge-pages");
  }
}

TEST_F(PreflightTest, APoolThatDoesNotFitTheMemoryFails) {
  options_.pool_bytes = 65 * kGiB;
  Expect("memory", Level::kFail,
         AllOf(HasSubstr("64GiB available"), HasSubstr("65GiB wanted")),
         HasSubstr("--t1-bytes"));
  options_.pool_bytes = 62 * kGiB;
  Expect("memory", Level::kWarn, HasSubstr("62GiB wanted"),
         HasSubstr("an eighth"));
  // Reserved huge pages are not among what is available.
  SetMemory(1, 62 * 512);
  options_.pool_bytes = 50 * kGiB;
  Expect("memory", Level::kOk, HasSubstr("63GiB available"), IsEmpty());
}

TEST_F(PreflightTest, TheLimitOfAContainerCounts) {
  options_.pool_bytes = 8 * kGiB;
  Write("/sys/fs/cgroup/memory.max", absl::StrCat(8 * kGiB));
  Write("/sys/fs/cgroup/memory.current", absl::StrCat(kGiB));
  Expect("memory", Level::kFail,
         AllOf(HasSubstr("leaves 7GiB"), HasSubstr("8GiB")),
         HasSubstr("memory limit"));
  Write("/sys/fs/cgroup/memory.max", "max\n");
  Expect("memory", Level::kOk, HasSubstr("8GiB wanted"), IsEmpty());
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", absl::StrCat(4 * kGiB));
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0");
  Expect("memory", Level::kFail, HasSubstr("leaves 4GiB"),
         HasSubstr("memory limit"));
}

TEST_F(PreflightTest, WithoutProcThereIsOnlyAWarning) {
  std::filesystem::remove(system_.root + "/proc/meminfo");
  Expect("memory", Level::kWarn, HasSubstr("/proc/meminfo"),
         HasSubstr("/proc"));
}

TEST_F(PreflightTest, HugePagesThatLackAreNamedWithTheirNumber) {
  Write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always advise [never]");
  SetMemory(64, 511);
  Expect("huge-pages", Level::kWarn,
         AllOf(HasSubstr("511 of 2 MiB"), HasSubstr("512 wanted")),
         HasSubstr("vm.nr_hugepages=512"));
  SetMemory(64, 512);
  Expect("huge-pages", Level::kOk, HasSubstr("512 of 2 MiB"), IsEmpty());
  SetMemory(64, 0);
  Write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always [advise] never");
  Expect("huge-pages", Level::kOk, HasSubstr("transparent"), IsEmpty());
}

TEST_F(PreflightTest, LockedMemoryMattersWhereRdmaIsWanted) {
  SetLimits(20000, "8388608");
  Expect("locked-memory", Level::kOk, HasSubstr("8MiB"), IsEmpty());
  options_.rdma = true;
  Expect("locked-memory", Level::kFail,
         AllOf(HasSubstr("8MiB"), HasSubstr("1GiB")), HasSubstr("IPC_LOCK"));
  Write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
  Expect("locked-memory", Level::kOk, HasSubstr("CAP_IPC_LOCK"), IsEmpty());
  Write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  SetLimits(20000, "unlimited");
  Expect("locked-memory", Level::kOk, HasSubstr("unlimited"), IsEmpty());
}

TEST_F(PreflightTest, APoolWithTooManySlabsForTheOpenFilesIsNoticed) {
  SetLimits(271, "unlimited");  // 16 slabs and 256 others
  Expect("open-files", Level::kWarn,
         AllOf(HasSubstr("271"), HasSubstr("272 wanted")),
         HasSubstr("ulimit -n 272"));
  SetLimits(272, "unlimited");
  Expect("open-files", Level::kOk, HasSubstr("272"), IsEmpty());
}

TEST_F(PreflightTest, OneNodeProcessBelongsOnEachNumaNode) {
  MakeFolder("/sys/devices/system/node/node1");
  Expect("numa", Level::kWarn, HasSubstr("2 NUMA nodes"),
         HasSubstr("--numa-node"));
  options_.numa_node = 2;
  Expect("numa", Level::kFail, HasSubstr("none of them 2"),
         HasSubstr("--numa-node"));
  options_.numa_node = 1;
  Write("/sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal:  9 kB\nNode 1 MemFree:   524288 kB\n");
  Expect("numa", Level::kWarn, HasSubstr("512MiB free on 1"),
         HasSubstr("divide"));
  options_.pool_bytes = kGiB / 2;
  Expect("numa", Level::kOk, HasSubstr("512MiB free on 1"), IsEmpty());
}

TEST_F(PreflightTest, ThatThereIsNoRdmaIsAFailureOnlyWhereItIsWanted) {
  Expect("rdma", Level::kOk, HasSubstr("no device"), IsEmpty());
  options_.rdma = true;
  Expect("rdma", Level::kFail, HasSubstr("no device"), HasSubstr("driver"));
}

TEST_F(PreflightTest, AnRdmaPortIsShownWithItsGids) {
  AddRdma();
  Expect("rdma", Level::kOk,
         AllOf(HasSubstr("mlx5_0:1 active"), HasSubstr("RoCE v2 GIDs 3")),
         IsEmpty());
}

TEST_F(PreflightTest, AnRdmaPortThatCannotBeUsedSaysWhy) {
  AddRdma();
  Write(std::string(kInfiniband) + "/gid_attrs/types/3", "IB/RoCE v1\n");
  Expect("rdma", Level::kWarn, HasSubstr("Ethernet"), HasSubstr("RoCE v2"));
  Write(std::string(kInfiniband) + "/gids/3",
        "0000:0000:0000:0000:0000:0000:0000:0000\n");
  Expect("rdma", Level::kWarn, HasSubstr("no GID"), HasSubstr("IP address"));
  options_.rdma = true;
  Expect("rdma", Level::kFail, HasSubstr("no GID"), HasSubstr("IP address"));
  Write(std::string(kInfiniband) + "/state", "1: DOWN\n");
  Expect("rdma", Level::kWarn, HasSubstr("not active"), HasSubstr("cable"));
}

TEST_F(PreflightTest, ADeviceWithoutItsVerbsFileIsNotUsable) {
  AddRdma();
  std::filesystem::remove_all(system_.root + "/dev/infiniband");
  std::filesystem::remove_all(system_.root + "/sys/class/infiniband/mlx5_0");
  MakeFolder("/sys/class/infiniband/mlx5_0");
  Expect("rdma", Level::kWarn, AllOf(HasSubstr("mlx5_0"), HasSubstr("uverbs")),
         HasSubstr("device plugin"));
}

TEST_F(PreflightTest, WhatUcxOffersIsNamedAndThatRowsGoOverTcp) {
  Expect("ucx", Level::kOk, HasSubstr("tcp, modules ib"), IsEmpty());
  environment_["UCX_TLS"] = "rc,sm";
  Expect("ucx", Level::kWarn, HasSubstr("UCX_TLS=rc,sm"), HasSubstr("unset"));
  options_.rdma = true;
  Expect("ucx", Level::kFail, HasSubstr("ib"), HasSubstr("TCP"));
  std::filesystem::remove_all(system_.root + "/usr/lib");
  Expect("ucx", Level::kFail, HasSubstr("tcp"), HasSubstr("libuct_ib"));
}

TEST_F(PreflightTest, AnInterfaceThatIsNotThereIsNamedWithThoseThatAre) {
  options_.data_device = "eth0,mlx5_7:1";
  Expect("data-device", Level::kFail,
         AllOf(HasSubstr("mlx5_7:1"), HasSubstr("among eth0")),
         HasSubstr("interfaces"));
}

TEST_F(PreflightTest, APortThatIsTakenIsNamed) {
  options_.listen = {"127.0.0.1:7402"};
  taken_ = "127.0.0.1:7402";
  Expect("port", Level::kFail,
         AllOf(HasSubstr("127.0.0.1:7402"), HasSubstr("Address in use")),
         HasSubstr("ss -ltnp"));
}

TEST_F(PreflightTest, AMapDirectoryHasToBeThereAndWritable) {
  options_.map_dir = "/run/farkv";
  Expect("map-dir", Level::kFail, HasSubstr("does not exist"),
         HasSubstr("volume"));
  Write("/run/farkv", "");
  Expect("map-dir", Level::kFail, HasSubstr("no directory"),
         HasSubstr("directory"));
  std::filesystem::remove(system_.root + "/run/farkv");
  MakeFolder("/run/farkv");
  Expect("map-dir", Level::kOk, HasSubstr("/run/farkv"), IsEmpty());
  writable_ = false;
  Expect("map-dir", Level::kFail, HasSubstr("cannot be written"),
         HasSubstr("fsGroup"));
}

TEST_F(PreflightTest, TheSocketsPathMustNotBeTooLong) {
  options_.map_dir = "/" + std::string(60, 'd');
  options_.node_id = std::string(41, 'n');  // with ".sock" 108 bytes
  MakeFolder(options_.map_dir);
  Expect("map-dir", Level::kFail,
         AllOf(HasSubstr("108 bytes"), HasSubstr("at most 107")),
         HasSubstr("shorter"));
  options_.node_id.pop_back();
  Expect("map-dir", Level::kOk, HasSubstr("/ddd"), IsEmpty());
}

TEST_F(PreflightTest, AClockThatIsSlowOrWrongIsNoticed) {
  synchronised_ = false;
  Expect("clock", Level::kWarn, HasSubstr("tsc, not synchronised"),
         HasSubstr("chrony"));
  Write("/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet\n");
  Expect("clock", Level::kWarn, HasSubstr("hpet"), HasSubstr("tsc"));
}

}  // namespace
}  // namespace farkv
