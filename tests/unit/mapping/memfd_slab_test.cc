#include "common/mapping/memfd_slab.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

MemfdSlab SlabOrDie(size_t size_bytes) {
  MemfdSlabOptions options;
  options.size_bytes = size_bytes;
  absl::StatusOr<MemfdSlab> slab = MemfdSlab::Create(options);
  if (!slab.ok()) ADD_FAILURE() << slab.status();
  return *std::move(slab);
}

UniqueFd FdOf(const MemfdSlab& slab) {
  absl::StatusOr<UniqueFd> fd = slab.DuplicateFd();
  EXPECT_TRUE(fd.ok()) << fd.status();
  return *std::move(fd);
}

TEST(MemfdSlabTest, TheOwnerReadsAndWritesZeroedMemory) {
  const MemfdSlab slab = SlabOrDie(2 * kMiB);

  EXPECT_EQ(slab.size_bytes(), 2 * kMiB);
  EXPECT_EQ(slab.base()[2 * kMiB - 1], std::byte{0});
  std::memset(slab.base(), 0x5a, slab.size_bytes());
  EXPECT_EQ(slab.base()[kMiB], std::byte{0x5a});
}

TEST(MemfdSlabTest, APassedDescriptorCannotBeMappedWritable) {
  const MemfdSlab slab = SlabOrDie(kMiB);
  const UniqueFd fd = FdOf(slab);

  void* writable =
      mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);

  EXPECT_EQ(writable, MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
}

TEST(MemfdSlabTest, AReadOnlyMappingCannotBeMadeWritable) {
  const MemfdSlab slab = SlabOrDie(kMiB);
  const UniqueFd fd = FdOf(slab);
  void* base = mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(base, MAP_FAILED);

  const int result = mprotect(base, kMiB, PROT_READ | PROT_WRITE);

  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EACCES);
  munmap(base, kMiB);
}

TEST(MemfdSlabTest, APassedDescriptorCanNeitherWriteNorResizeNorUnseal) {
  const MemfdSlab slab = SlabOrDie(kMiB);
  const UniqueFd fd = FdOf(slab);
  const char byte = 1;

  EXPECT_EQ(pwrite(fd.get(), &byte, 1, 0), -1);
  EXPECT_EQ(ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(ftruncate(fd.get(), 2 * kMiB), -1);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(fcntl(fd.get(), F_GET_SEALS) & kSlabSeals, kSlabSeals);
}

TEST(MemfdSlabTest, AReopenedDescriptorIsAsReadOnly) {
  const MemfdSlab slab = SlabOrDie(kMiB);
  const UniqueFd fd = FdOf(slab);
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  const UniqueFd again(open(path.c_str(), O_RDWR | O_CLOEXEC));

  void* writable =
      mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0);

  EXPECT_EQ(writable, MAP_FAILED);
}

TEST(MemfdSlabTest, TheOwnersWritesAreSeenThroughTheDescriptor) {
  const MemfdSlab slab = SlabOrDie(kMiB);
  const UniqueFd fd = FdOf(slab);
  void* base = mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(base, MAP_FAILED);

  slab.base()[kMiB - 1] = std::byte{42};

  EXPECT_EQ(static_cast<const std::byte*>(base)[kMiB - 1], std::byte{42});
  munmap(base, kMiB);
}

TEST(MemfdSlabTest, PrefaultTellsItsProgressAndKeepsTheContents) {
  MemfdSlab slab = SlabOrDie(40 * kMiB);
  slab.base()[17] = std::byte{99};
  std::vector<size_t> told;

  const absl::Status status = slab.Prefault([&](size_t done, size_t total) {
    EXPECT_EQ(total, 40 * kMiB);
    told.push_back(done);
    return true;
  });

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(told, ElementsAre(16 * kMiB, 32 * kMiB, 40 * kMiB));
  EXPECT_EQ(slab.base()[17], std::byte{99});
  struct stat info;
  ASSERT_EQ(fstat(FdOf(slab).get(), &info), 0);
  EXPECT_EQ(static_cast<size_t>(info.st_blocks) * 512, 40 * kMiB);
}

TEST(MemfdSlabTest, PrefaultEndsWhenToldTo) {
  MemfdSlab slab = SlabOrDie(40 * kMiB);

  const absl::Status status =
      slab.Prefault([](size_t, size_t) { return false; });

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(status.message()), HasSubstr("16777216 of 41943040"));
}

TEST(MemfdSlabTest, WithoutReservedHugePagesItFallsBack) {
  MemfdSlabOptions options;
  options.size_bytes = 3 * 4096;  // no multiple of a huge page
  const absl::StatusOr<MemfdSlab> slab = MemfdSlab::Create(options);

  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->pages(), SlabPages::kAdvised);
}

// Reserves 2 MiB pages while it lives, where this process may and there are
// none: who already has some needs them. One process at a time does.
class HugePages {
 public:
  explicit HugePages(int count) {
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 || Read() != "0") return;
    Reserve(count);
    reserved_ = Read() == std::to_string(count);
  }
  ~HugePages() {
    if (reserved_) Reserve(0);
  }

  bool reserved() const { return reserved_; }

 private:
  static constexpr char kPath[] = "/proc/sys/vm/nr_hugepages";

  static std::string Read() {
    std::string word;
    std::ifstream(kPath) >> word;
    return word;
  }
  static void Reserve(int count) { std::ofstream(kPath) << count << std::endl; }

  const UniqueFd lock_{open(kPath, O_RDONLY | O_CLOEXEC)};
  bool reserved_ = false;
};

TEST(MemfdSlabTest, ReservedHugePagesAreUsedAndTheNextSlabFallsBack) {
  const HugePages huge(1);
  if (!huge.reserved()) {
    GTEST_SKIP() << "huge pages are in use already, or may not be reserved";
  }

  MemfdSlab slab = SlabOrDie(2 * kMiB);
  const MemfdSlab next = SlabOrDie(2 * kMiB);

  ASSERT_EQ(slab.pages(), SlabPages::kHugeTlb);
  EXPECT_EQ(next.pages(), SlabPages::kAdvised);
  const UniqueFd fd = FdOf(slab);
  struct stat info;
  ASSERT_EQ(fstat(fd.get(), &info), 0);
  EXPECT_EQ(static_cast<size_t>(info.st_blksize), 2 * kMiB);
  EXPECT_EQ(fcntl(fd.get(), F_GET_SEALS) & kSlabSeals, kSlabSeals);
  EXPECT_TRUE(slab.Prefault([](size_t, size_t) { return true; }).ok());
  slab.base()[2 * kMiB - 1] = std::byte{7};
}

TEST(MemfdSlabTest, ABadSizeIsNamed) {
  MemfdSlabOptions options;
  options.size_bytes = 4097;

  const absl::Status status = MemfdSlab::Create(options).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("size is 4097 bytes"));
}

TEST(MemfdSlabTest, AMissingNumaNodeIsNamed) {
  MemfdSlabOptions options;
  options.size_bytes = kMiB;
  options.numa_node = 1000;

  const absl::Status status = MemfdSlab::Create(options).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
}

TEST(MemfdSlabTest, MovingHandsTheMappingOver) {
  MemfdSlab first = SlabOrDie(kMiB);
  std::byte* base = first.base();

  MemfdSlab second = std::move(first);
  MemfdSlab third = SlabOrDie(kMiB);
  third = std::move(second);

  EXPECT_EQ(third.base(), base);
  third.base()[0] = std::byte{1};
}

}  // namespace
}  // namespace farkv
