// Where received bodies lie: buffers aligned to 64 bytes. Large ones are kept
// for the next message, because fresh memory costs a page fault per 4 KiB,
// which is most of the time of a 1 MiB message over loopback. Thread-safe;
// held by shared_ptr because bodies outlive the transport.
#ifndef FARKV_COMMON_TRANSPORT_UCX_RECEIVE_BUFFERS_H_
#define FARKV_COMMON_TRANSPORT_UCX_RECEIVE_BUFFERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/transport/transport.h"

namespace farkv {

class ReceiveBuffers : public std::enable_shared_from_this<ReceiveBuffers> {
 public:
  // Keeps at most `max_kept_bytes` of buffers that are not in use and lends at
  // most `max_lent_bytes`, whoever asks.
  explicit ReceiveBuffers(size_t max_kept_bytes,
                          size_t max_lent_bytes = SIZE_MAX)
      : max_kept_bytes_(max_kept_bytes), max_lent_bytes_(max_lent_bytes) {}
  ~ReceiveBuffers();
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

  // `size` bytes with any content; they come back when the lease ends. An
  // empty lease when that would be more than may be lent, or when the machine
  // has no memory for it.
  BufferLease Take(size_t size);

  size_t kept_bytes() const;
  // Of leases that have not ended.
  size_t lent_bytes() const { return lent_bytes_.load(); }

 private:
  // Classes are powers of two from 16 KiB; smaller buffers are not kept.
  static constexpr size_t kSmallestClass = 14;
  static constexpr size_t kNumClasses = 13;  // up to 64 MiB

  std::byte* TakeKept(size_t size_class);
  void Return(std::byte* bytes, size_t size_class);

  const size_t max_kept_bytes_;
  const size_t max_lent_bytes_;
  std::atomic<size_t> lent_bytes_ = 0;
  mutable absl::Mutex mutex_;
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<std::vector<std::byte*>, kNumClasses> kept_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_RECEIVE_BUFFERS_H_
