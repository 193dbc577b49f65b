// The CPU device: host memory, and streams that run every operation before
// Enqueue returns. The oracle of the other devices.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/device_kinds.h"

namespace farkv {
namespace {

class CpuStream final : public Stream {
 public:
  explicit CpuStream(ThreadPool& pool) : pool_(pool) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  void Enqueue(Operation operation) override { operation(pool_); }
  void Copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void Notify(std::function<void()> callback) override { callback(); }
  void Synchronize() override {}

 private:
  ThreadPool& pool_;
};

absl::Status OutOfMemory(size_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", bytes, " bytes of host memory"));
}

#if defined(FARKV_ADDRESS_SANITIZED)
constexpr bool kWatchEnds = true;
#else
constexpr bool kWatchEnds = false;
#endif

// Small buffers come from the heap, where a sanitizer watches their ends; under
// the sanitizer larger ones too.
absl::StatusOr<DeviceBuffer> AllocateSmall(size_t bytes) {
  const size_t rounded = (bytes + 63) / 64 * 64;
  void* data = std::aligned_alloc(64, rounded);
  if (data == nullptr) return OutOfMemory(bytes);
  std::memset(data, 0, rounded);
  return DeviceBuffer(static_cast<std::byte*>(data), bytes,
                      [data] { std::free(data); });
}

absl::StatusOr<DeviceBuffer> AllocateLarge(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return OutOfMemory(bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // advice only; may be refused
  return DeviceBuffer(static_cast<std::byte*>(data), bytes,
                      [data, bytes] { munmap(data, bytes); });
}

// Buffers of some size one after the other in regions of huge pages: a model's
// weights are hundreds of pieces smaller than a huge page, and are read faster
// from huge pages. A region goes back when its last buffer has gone, so it
// suits what lives as long as the device. Thread-safe.
class HugePageArena {
 public:
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) {
    const size_t rounded = (bytes + 63) / 64 * 64;
    absl::MutexLock lock(&mutex_);
    if (region_ == nullptr || rounded > region_->size() - used_) {
      absl::StatusOr<DeviceBuffer> region = AllocateLarge(kRegionBytes);
      if (!region.ok()) return OutOfMemory(bytes);
      region_ = std::make_shared<DeviceBuffer>(*std::move(region));
      used_ = 0;
    }
    std::byte* data = region_->data() + used_;
    used_ += rounded;
    return DeviceBuffer(data, bytes, [region = region_] {});
  }

 private:
  static constexpr size_t kRegionBytes = size_t{64} << 20;

  absl::Mutex mutex_;
  std::shared_ptr<DeviceBuffer> region_ ABSL_GUARDED_BY(mutex_);
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(ThreadPool& pool) : pool_(pool) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }

  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override {
    constexpr size_t kSmall = size_t{64} << 10;
    constexpr size_t kLarge = size_t{8} << 20;
    if (bytes == 0) return DeviceBuffer();
    if (bytes < (kWatchEnds ? kLarge : kSmall)) return AllocateSmall(bytes);
    return bytes < kLarge ? arena_.Allocate(bytes) : AllocateLarge(bytes);
  }

  std::unique_ptr<Stream> NewStream() override {
    return std::make_unique<CpuStream>(pool_);
  }

 private:
  ThreadPool& pool_;
  HugePageArena arena_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCpuDevice(ThreadPool& pool) {
  return std::make_unique<CpuDevice>(pool);
}

}  // namespace farkv
