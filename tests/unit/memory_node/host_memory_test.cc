#include "memory_node/pool/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace farkv {
namespace {

// A root directory with the files that the kernel would show.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/proc");
    std::filesystem::create_directories(root_ + "/sys/fs/cgroup");
    Write("/proc/meminfo",
          "MemTotal:       4000 kB\nMemFree:  1 kB\n"
          "MemAvailable:   2000 kB\nHugePages_Total:       0\n");
  }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ + path) << text;
  }

  const std::string root_ =
      ::testing::TempDir() + "/host_memory_test_" + std::to_string(getpid());
};

TEST_F(HostMemoryTest, WithoutAGroupTheMachineDecides) {
  EXPECT_EQ(AvailableMemoryBytes(false, root_), 2000u << 10);
}

TEST_F(HostMemoryTest, AGroupsLimitLessItsUseDecidesWhenItIsSmaller) {
  Write("/sys/fs/cgroup/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/memory.current", "400000\n");

  EXPECT_EQ(AvailableMemoryBytes(false, root_), 600000u);
}

TEST_F(HostMemoryTest, AGroupWithoutALimitDoesNotMatter) {
  Write("/sys/fs/cgroup/memory.max", "max\n");
  Write("/sys/fs/cgroup/memory.current", "400000\n");

  EXPECT_EQ(AvailableMemoryBytes(false, root_), 2000u << 10);
}

TEST_F(HostMemoryTest, FreeHugePagesCountOnlyWhenTheyAreWanted) {
  const std::string pages = "/sys/kernel/mm/hugepages/hugepages-2048kB";
  std::filesystem::create_directories(root_ + pages);
  Write(pages + "/free_hugepages", "5\n");
  Write(pages + "/resv_hugepages", "2\n");

  EXPECT_EQ(AvailableMemoryBytes(false, root_), 2000u << 10);
  EXPECT_EQ(AvailableMemoryBytes(true, root_), (2000u << 10) + (6u << 20));
}

TEST_F(HostMemoryTest, APoolOfMoreSlabsThanDescriptorsIsRefusedNamingBoth) {
  EXPECT_TRUE(CheckDescriptorsSuffice(768 << 20, 1 << 20, 1024).ok());
  const std::string text =
      CheckDescriptorsSuffice(769 << 20, 1 << 20, 1024).ToString();
  EXPECT_NE(text.find("769 slabs"), std::string::npos) << text;
  EXPECT_NE(text.find("768MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("1024"), std::string::npos) << text;
}

TEST_F(HostMemoryTest, APoolThatDoesNotFitIsRefusedNamingBoth) {
  EXPECT_TRUE(CheckPoolFits(1 << 20, 1 << 20).ok());
  EXPECT_TRUE(CheckPoolFits(1 << 20, 0).ok());
  const std::string text = CheckPoolFits(2 << 20, 1 << 20).ToString();
  EXPECT_NE(text.find("2MiB"), std::string::npos);
  EXPECT_NE(text.find("1MiB"), std::string::npos);
}

}  // namespace
}  // namespace farkv
