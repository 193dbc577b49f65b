// What every device must do (kernels/stream.h). A backend joins with a traits
// class: `static absl::StatusOr<std::unique_ptr<Device>> Open(ThreadPool&)`.
#ifndef FARKV_TESTS_CONFORMANCE_DEVICE_CONFORMANCE_H_
#define FARKV_TESTS_CONFORMANCE_DEVICE_CONFORMANCE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/elementwise.h"
#include "kernels/stream.h"

namespace farkv {

template <typename Traits>
class DeviceConformanceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = Traits::Open(pool_);
    ASSERT_TRUE(device.ok()) << device.status().ToString();
    device_ = std::move(device).value();
    stream_ = device_->NewStream();
  }

  DeviceBuffer Allocate(size_t bytes) {
    auto buffer = device_->Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return std::move(buffer).value();
  }

  template <typename T>
  DeviceBuffer Upload(const std::vector<T>& host) {
    DeviceBuffer buffer = Allocate(host.size() * sizeof(T));
    stream_->Copy(buffer.data(), host.data(), buffer.size());
    stream_->Synchronize();
    return buffer;
  }

  template <typename T>
  std::vector<T> Download(const DeviceBuffer& buffer) {
    std::vector<T> host(buffer.size() / sizeof(T));
    stream_->Copy(host.data(), buffer.data(), buffer.size());
    stream_->Synchronize();
    return host;
  }

  ThreadPool pool_{2};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

TYPED_TEST_SUITE_P(DeviceConformanceTest);

TYPED_TEST_P(DeviceConformanceTest, ABufferIsZeroedAlignedAndOfItsSize) {
  for (size_t bytes : {size_t{1}, size_t{4097}, size_t{5} << 20}) {
    DeviceBuffer buffer = this->Allocate(bytes);

    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    const auto host = this->template Download<uint8_t>(buffer);
    EXPECT_EQ(std::ranges::count(host, 0), static_cast<int64_t>(bytes));
  }
}

TYPED_TEST_P(DeviceConformanceTest, AnEmptyBufferIsNoError) {
  DeviceBuffer buffer = this->Allocate(0);

  this->stream_->Copy(buffer.data(), nullptr, 0);
  this->stream_->Synchronize();

  EXPECT_EQ(buffer.size(), 0u);
}

TYPED_TEST_P(DeviceConformanceTest, TooMuchMemoryIsRefusedNamingTheSize) {
  const auto buffer = this->device_->Allocate(size_t{1} << 55);

  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()),
              testing::HasSubstr("36028797018963968"));
}

TYPED_TEST_P(DeviceConformanceTest, AMovedBufferIsReleasedOnce) {
  int releases = 0;
  std::byte memory{};
  {
    DeviceBuffer first(&memory, 1, [&releases] { ++releases; });
    DeviceBuffer second = std::move(first);
    first = std::move(second);
    EXPECT_EQ(first.data(), &memory);
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TYPED_TEST_P(DeviceConformanceTest, CopiesRunInOrder) {
  std::vector<int32_t> ascending(1000);
  std::iota(ascending.begin(), ascending.end(), 1);
  const std::vector<int32_t> zeros(ascending.size());
  const size_t bytes = ascending.size() * sizeof(int32_t);
  DeviceBuffer first = this->Allocate(bytes);
  DeviceBuffer second = this->Allocate(bytes);

  this->stream_->Copy(first.data(), ascending.data(), bytes);
  this->stream_->Copy(second.data(), first.data(), bytes);
  this->stream_->Copy(first.data(), zeros.data(), bytes);

  EXPECT_EQ(this->template Download<int32_t>(second), ascending);
  EXPECT_EQ(this->template Download<int32_t>(first), zeros);
}

TYPED_TEST_P(DeviceConformanceTest, OperationsRunInOrderHoweverMany) {
  std::vector<int> order;
  for (int i = 0; i < 5000; ++i) {
    this->stream_->Enqueue([&order, i](ThreadPool&) { order.push_back(i); });
  }
  this->stream_->Synchronize();

  std::vector<int> expected(5000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TYPED_TEST_P(DeviceConformanceTest, NotifyComesAfterEverythingBefore) {
  std::atomic<int> finished{0};
  int seen = -1;
  absl::Notification done;
  for (int i = 0; i < 10; ++i) {
    this->stream_->Enqueue([&finished](ThreadPool&) { ++finished; });
  }
  this->stream_->Notify([&] {
    seen = finished.load();
    done.Notify();
  });
  done.WaitForNotification();

  EXPECT_EQ(seen, 10);
}

TYPED_TEST_P(DeviceConformanceTest, AKernelReadsAndWritesDeviceMemory) {
  DeviceBuffer x = this->template Upload<float>({1, 2, 3});
  DeviceBuffer y = this->template Upload<float>({10, 20, 30});

  Add(*this->stream_, reinterpret_cast<float*>(x.data()),
      reinterpret_cast<const float*>(y.data()), 3);

  EXPECT_THAT(this->template Download<float>(x),
              testing::ElementsAre(11, 22, 33));
}

TYPED_TEST_P(DeviceConformanceTest, ADestroyedStreamHasFinishedItsWork) {
  DeviceBuffer x = this->template Upload<int32_t>({0});
  const int32_t seven = 7;
  auto other = this->device_->NewStream();

  other->Copy(x.data(), &seven, sizeof(seven));
  other.reset();

  EXPECT_THAT(this->template Download<int32_t>(x), testing::ElementsAre(7));
}

TYPED_TEST_P(DeviceConformanceTest, StreamsOfSeveralThreadsWorkAtOnce) {
  constexpr int kThreads = 3;
  constexpr int64_t kCount = 2000;
  std::vector<DeviceBuffer> buffers;
  for (int i = 0; i < kThreads; ++i) {
    buffers.push_back(this->Allocate(kCount * sizeof(int64_t)));
  }
  std::vector<std::thread> threads;
  for (DeviceBuffer& buffer : buffers) {
    threads.emplace_back([this, &buffer] {
      auto stream = this->device_->NewStream();
      auto* numbers = reinterpret_cast<int64_t*>(buffer.data());
      for (int round = 0; round < 20; ++round) {
        stream->Enqueue([numbers](ThreadPool& pool) {
          pool.ParallelFor(kCount, [=](int64_t i) { numbers[i] += i; });
        });
        if (round % 5 == 0) stream->Synchronize();
      }
      stream->Synchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<int64_t> expected(kCount);
  for (int64_t i = 0; i < kCount; ++i) {
    expected[static_cast<size_t>(i)] = 20 * i;
  }
  for (const DeviceBuffer& buffer : buffers) {
    EXPECT_EQ(this->template Download<int64_t>(buffer), expected);
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    DeviceConformanceTest, ABufferIsZeroedAlignedAndOfItsSize,
    AnEmptyBufferIsNoError, TooMuchMemoryIsRefusedNamingTheSize,
    AMovedBufferIsReleasedOnce, CopiesRunInOrder,
    OperationsRunInOrderHoweverMany, NotifyComesAfterEverythingBefore,
    AKernelReadsAndWritesDeviceMemory, ADestroyedStreamHasFinishedItsWork,
    StreamsOfSeveralThreadsWorkAtOnce);

}  // namespace farkv

#endif  // FARKV_TESTS_CONFORMANCE_DEVICE_CONFORMANCE_H_
