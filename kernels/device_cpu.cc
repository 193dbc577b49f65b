// The CPU device: host memory, and streams that run every operation before
// Enqueue returns. The oracle of the other devices.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
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

// Small buffers come from the heap, where a sanitizer watches their ends.
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

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(ThreadPool& pool) : pool_(pool) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }

  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) override {
    constexpr size_t kLarge = size_t{1} << 21;
    if (bytes == 0) return DeviceBuffer();
    return bytes < kLarge ? AllocateSmall(bytes) : AllocateLarge(bytes);
  }

  std::unique_ptr<Stream> NewStream() override {
    return std::make_unique<CpuStream>(pool_);
  }

 private:
  ThreadPool& pool_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCpuDevice(ThreadPool& pool) {
  return std::make_unique<CpuDevice>(pool);
}

}  // namespace farkv
