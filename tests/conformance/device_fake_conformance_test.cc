#include <unistd.h>

#include <atomic>
#include <utility>

#include "kernels/device_fake.h"
#include "tests/conformance/device_conformance.h"

namespace farkv {
namespace {

struct FakeTraits {
  static absl::StatusOr<std::unique_ptr<Device>> Open(ThreadPool& pool) {
    return OpenDevice("fake", pool);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, DeviceConformanceTest, FakeTraits);

// What only the fake device promises.
class FakeDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    device_ = OpenDevice("fake", pool_).value();
    stream_ = device_->NewStream();
    buffer_ = device_->Allocate(64).value();
    number_ = reinterpret_cast<int32_t*>(buffer_.data());
  }

  // An operation that shows when it runs.
  void EnqueueIncrement(std::atomic<int>* count) {
    stream_->Enqueue([count](ThreadPool&) { ++*count; });
  }

  FakeDeviceControl& control() { return *FakeDeviceControl::Of(*stream_); }

  ThreadPool pool_{2};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  DeviceBuffer buffer_;
  volatile int32_t* number_ = nullptr;
};

using FakeDeviceDeathTest = FakeDeviceTest;

TEST_F(FakeDeviceDeathTest, AHostReadOfDeviceMemoryFaults) {
  EXPECT_DEATH(static_cast<void>(*number_), "");
}

TEST_F(FakeDeviceDeathTest, AHostWriteAfterAnOperationFaults) {
  stream_->Enqueue([this](ThreadPool&) { *number_ = 1; });
  stream_->Synchronize();

  EXPECT_DEATH(*number_ = 2, "");
}

TEST_F(FakeDeviceDeathTest, ACallbackIsHostCode) {
  EXPECT_DEATH(
      {
        stream_->Notify([this] { *number_ = 1; });
        stream_->Synchronize();
      },
      "");
}

TEST_F(FakeDeviceDeathTest, AHeldStreamLeavesItsMemoryClosed) {
  stream_->Enqueue([this](ThreadPool&) { *number_ = 1; });
  stream_->Enqueue([this](ThreadPool&) { *number_ = 2; });
  control().Hold();
  ASSERT_TRUE(control().Step());

  EXPECT_DEATH(static_cast<void>(*number_), "");

  control().Resume();
  stream_->Synchronize();
}

// Wherever between two operations the hold comes.
TEST_F(FakeDeviceTest, AStreamThatIsHeldAmongOperationsClosesItsMemory) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  constexpr int kRounds = 3000, kOperations = 200;
  std::atomic<int> count = 0;
  int open = 0;
  for (int i = 0; i < kRounds; ++i) {
    for (int k = 0; k < kOperations; ++k) EnqueueIncrement(&count);
    while (count < i * kOperations + i % 100) {
    }
    control().Hold();
    // The system looks instead of the host: a read of closed memory fails.
    if (write(pipe_ends[1], const_cast<int32_t*>(number_), 1) == 1) {
      ++open;
      char byte;
      ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
    }
    control().Resume();
    stream_->Synchronize();
  }
  EXPECT_EQ(open, 0);
  EXPECT_EQ(count, kRounds * kOperations);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(FakeDeviceDeathTest, AnOperationOnReleasedMemoryFaults) {
  EXPECT_DEATH(
      {
        stream_->Enqueue([this](ThreadPool&) { *number_ = 1; });
        buffer_ = DeviceBuffer();
        stream_->Synchronize();
      },
      "");
}

TEST_F(FakeDeviceTest, MemoryBetweenReleasedBuffersStaysUsable) {
  std::vector<DeviceBuffer> buffers;
  for (int i = 0; i < 5; ++i)
    buffers.push_back(device_->Allocate(5000).value());
  buffers[0] = DeviceBuffer();
  buffers[2] = DeviceBuffer();
  buffers[4] = device_->Allocate(1).value();

  for (size_t i : {size_t{1}, size_t{3}, size_t{4}}) {
    stream_->Enqueue([&buffers, i](ThreadPool&) {
      buffers[i].data()[buffers[i].size() - 1] = std::byte{1};
    });
  }
  stream_->Synchronize();
}

TEST_F(FakeDeviceTest, FreedAddressesAreUsedAgainWhenNoOthersAreLeft) {
  constexpr size_t kBytes = size_t{9} << 30;
  const std::byte* before = nullptr;
  for (int i = 0; i < 40; ++i) {  // 360 GiB of 64
    auto large = device_->Allocate(kBytes);
    ASSERT_TRUE(large.ok()) << i << ": " << large.status();
    EXPECT_NE(large->data(), before);
    before = large->data();
    auto* first = reinterpret_cast<int64_t*>(large->data());
    int64_t found = -1;
    stream_->Enqueue(
        [=, &found](ThreadPool&) { found = std::exchange(*first, 5); });
    stream_->Synchronize();
    EXPECT_EQ(found, 0);
    // What lives stays as it is, and can be used.
    stream_->Enqueue([this, i](ThreadPool&) {
      EXPECT_EQ(*number_, i);
      *number_ = i + 1;
    });
    stream_->Synchronize();
  }
}

TEST_F(FakeDeviceTest, MoreThanThereAreAddressesIsRefused) {
  const auto most = device_->Allocate(size_t{60} << 30);
  ASSERT_TRUE(most.ok());

  EXPECT_EQ(device_->Allocate(size_t{5} << 30).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(device_->Allocate(size_t{3} << 30).ok());
}

TEST_F(FakeDeviceTest, OperationsRunOnlyWhenSomeoneWaits) {
  std::atomic<int> count{0};
  EnqueueIncrement(&count);
  EnqueueIncrement(&count);
  EXPECT_EQ(control().Queued(), 2u);
  EXPECT_EQ(count, 0);

  stream_->Synchronize();

  EXPECT_EQ(control().Queued(), 0u);
  EXPECT_EQ(count, 2);
}

TEST_F(FakeDeviceTest, HostMemoryIsReadLate) {
  int32_t source = 1;
  int32_t result = 0;
  stream_->Copy(buffer_.data(), &source, sizeof(source));
  stream_->Copy(&result, buffer_.data(), sizeof(result));
  source = 2;  // too early, and the fake device shows it

  stream_->Synchronize();

  EXPECT_EQ(result, 2);
}

TEST_F(FakeDeviceTest, AHeldStreamRunsOnlyStepByStep) {
  std::atomic<int> count{0};
  absl::Notification event;
  control().Hold();
  EnqueueIncrement(&count);
  stream_->Notify([&event] { event.Notify(); });
  EnqueueIncrement(&count);
  EXPECT_EQ(count, 0);

  EXPECT_TRUE(control().Step());
  EXPECT_EQ(count, 1);
  EXPECT_FALSE(event.HasBeenNotified());

  EXPECT_TRUE(control().Step());
  EXPECT_TRUE(event.HasBeenNotified());
  EXPECT_EQ(count, 1);

  EXPECT_TRUE(control().Step());
  EXPECT_EQ(count, 2);
  EXPECT_FALSE(control().Step());
}

TEST_F(FakeDeviceTest, AResumedStreamRunsEverything) {
  absl::Notification event;
  control().Hold();
  stream_->Notify([&event] { event.Notify(); });
  EXPECT_FALSE(event.HasBeenNotified());

  control().Resume();

  event.WaitForNotification();
}

TEST_F(FakeDeviceTest, OneStreamsEndDoesNotCloseMemoryUnderAnother) {
  auto other = device_->NewStream();
  absl::Notification started;
  absl::Notification go_on;
  other->Enqueue([&](ThreadPool&) {
    started.Notify();
    go_on.WaitForNotification();
    *number_ = 5;
  });
  other->Notify([] {});
  started.WaitForNotification();

  stream_->Enqueue([](ThreadPool&) {});
  stream_->Synchronize();
  go_on.Notify();
  other->Synchronize();

  int32_t result = 0;
  stream_->Copy(&result, buffer_.data(), sizeof(result));
  stream_->Synchronize();
  EXPECT_EQ(result, 5);
}

TEST_F(FakeDeviceTest, OnlyItsOwnStreamsHaveAControl) {
  auto cpu = OpenDevice("cpu", pool_).value();
  auto stream = cpu->NewStream();

  EXPECT_EQ(FakeDeviceControl::Of(*stream), nullptr);
}

}  // namespace
}  // namespace farkv
