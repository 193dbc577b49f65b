// A stream orders kernels and copies on one device. Every operation in
// kernels/ takes a Stream and returns when it is enqueued; spans and buffers
// passed to it must stay valid and unchanged until the stream has reached an
// event recorded after it.
//
// Kinds: kCpu runs each operation inline before it returns, on the thread pool
// given at construction. kFake (only in the -faults programs) runs them late
// on its own thread and lets nothing but operations touch device memory; it
// keeps the CUDA seam honest. kCuda is the CUDA backend.
//
// Thread-compatible: one thread enqueues. Non-goals: priorities, capture.
#ifndef FARKV_KERNELS_STREAM_H_
#define FARKV_KERNELS_STREAM_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"

namespace farkv {

enum class DeviceKind { kCpu, kFake, kCuda };

class Stream {
 public:
  using Operation = std::function<void(ThreadPool&)>;

  virtual ~Stream() = default;
  virtual DeviceKind kind() const = 0;

  // Runs `operation` after everything enqueued before. Operations of the CPU
  // kernels; a CUDA kernel launches on its own stream handle instead.
  virtual void Enqueue(Operation operation) = 0;

  // Copies between any two of host and device memory, in stream order.
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;

  // Runs `callback` on an unspecified thread, holding no lock, once everything
  // enqueued before has finished. At most a flag or a queue push belongs there.
  virtual void Notify(std::function<void()> callback) = 0;

  // Blocks until everything enqueued before has finished.
  virtual void Synchronize() = 0;
};

// Memory of one device. Move-only owner; `data()` is a device address: host
// code must not dereference it (the fake device makes such a read fault).
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::byte* data, size_t size, std::function<void()> release)
      : data_(data), size_(size), release_(std::move(release)) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::function<void()> release_;
};

// One device: where T0, weights and activations live.
class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  // Zeroed, 64-byte aligned. RESOURCE_EXHAUSTED naming the size when there is
  // not enough memory.
  virtual absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Stream> NewStream() = 0;
};

// `name` is "cpu", "fake" or "cuda". `pool` runs the CPU kernels and must
// outlive the device. UNIMPLEMENTED when this program was built without it.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name,
                                                   ThreadPool& pool);

// What the kernels of this process compute with, as sent in handshakes: two
// parties with the same text give the same bits. Names the Highway target and
// the bf16 product kernel, e.g.
// "AVX3_DL+avx512bf16+k1"; the last part is the revision of the arithmetic.
std::string KernelTarget();

}  // namespace farkv

#endif  // FARKV_KERNELS_STREAM_H_
