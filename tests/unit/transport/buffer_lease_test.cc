#include <utility>
#include <vector>

#include "common/transport/transport.h"
#include "gtest/gtest.h"

// Under AddressSanitizer too, memory that there is not is a null pointer.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace farkv {
namespace {

TEST(BufferLeaseTest, ReleasesOnceHoweverOftenItMoves) {
  std::vector<std::byte> bytes(8);
  int released = 0;
  {
    BufferLease first(bytes, [&released] { ++released; });
    BufferLease second(std::move(first));
    BufferLease third;
    third = std::move(second);
    EXPECT_EQ(first.size(), 0u);
    EXPECT_EQ(second.size(), 0u);
    EXPECT_EQ(third.bytes().data(), bytes.data());
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(BufferLeaseTest, MemoryThatThereIsNotIsRefused) {
  for (const int shift : {50, 62}) {
    const auto refused = BufferLease::Allocate(size_t{1} << shift);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  }

  const auto lease = BufferLease::Allocate(100);
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->size(), 100u);
}

TEST(BufferLeaseTest, AssignmentReleasesWhatWasHeld) {
  std::vector<std::byte> bytes(8);
  int first_released = 0;
  int second_released = 0;
  BufferLease lease(bytes, [&first_released] { ++first_released; });

  lease = BufferLease(bytes, [&second_released] { ++second_released; });

  EXPECT_EQ(first_released, 1);
  EXPECT_EQ(second_released, 0);
  lease = BufferLease();
  EXPECT_EQ(second_released, 1);
}

TEST(BufferLeaseTest, OwningKeepsTheBytesInPlace) {
  std::vector<std::byte> bytes(100, std::byte{7});
  const std::byte* data = bytes.data();

  const BufferLease lease = BufferLease::Owning(std::move(bytes));

  EXPECT_EQ(lease.bytes().data(), data);
  EXPECT_EQ(lease.size(), 100u);
  EXPECT_EQ(lease.bytes()[99], std::byte{7});
}

}  // namespace
}  // namespace farkv
