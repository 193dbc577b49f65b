#include "common/transport/ucx/receive_buffers.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"

namespace farkv {
namespace {

TEST(ReceiveBuffersTest, EveryBufferIsAlignedAndHasItsSize) {
  auto buffers = std::make_shared<ReceiveBuffers>(size_t{1} << 30);
  for (size_t size : {size_t{1}, size_t{16383}, size_t{16384}, size_t{16385},
                      size_t{1} << 20, kMaxBodyBytes}) {
    const BufferLease lease = buffers->Take(size);

    EXPECT_EQ(lease.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lease.bytes().data()) % 64, 0u);
    lease.bytes()[0] = lease.bytes()[size - 1] = std::byte{1};
  }
  EXPECT_EQ(buffers->Take(0).size(), 0u);
}

TEST(ReceiveBuffersTest, AReturnedBufferIsUsedAgain) {
  auto buffers = std::make_shared<ReceiveBuffers>(size_t{1} << 30);
  BufferLease first = buffers->Take(100000);
  const std::byte* bytes = first.bytes().data();
  EXPECT_NE(buffers->Take(100000).bytes().data(), bytes);

  first = BufferLease();

  EXPECT_EQ(buffers->Take(90000).bytes().data(), bytes);
}

TEST(ReceiveBuffersTest, KeepsNoMoreThanItsBound) {
  auto buffers = std::make_shared<ReceiveBuffers>(size_t{128} << 10);
  {
    const BufferLease first = buffers->Take(size_t{64} << 10);
    const BufferLease second = buffers->Take(size_t{64} << 10);
    const BufferLease third = buffers->Take(size_t{64} << 10);
    EXPECT_EQ(buffers->kept_bytes(), 0u);
  }
  EXPECT_EQ(buffers->kept_bytes(), size_t{128} << 10);
}

TEST(ReceiveBuffersTest, NoMoreIsLentThanTheBound) {
  auto buffers = std::make_shared<ReceiveBuffers>(0, size_t{100} << 10);
  {
    const BufferLease small = buffers->Take(4096);
    const BufferLease large = buffers->Take(size_t{96} << 10);
    EXPECT_EQ(large.size(), size_t{96} << 10);
    EXPECT_EQ(buffers->Take(1).size(), 0u);
  }
  EXPECT_EQ(buffers->Take(size_t{100} << 10).size(), size_t{100} << 10);
}

TEST(ReceiveBuffersTest, ALeaseMayOutliveItsBuffers) {
  auto buffers = std::make_shared<ReceiveBuffers>(size_t{1} << 20);
  const BufferLease lease = buffers->Take(50000);

  buffers.reset();

  lease.bytes()[49999] = std::byte{1};
}

}  // namespace
}  // namespace farkv
