#include "common/transport/ucx/receive_buffers.h"

#include <algorithm>
#include <bit>
#include <new>

namespace farkv {
namespace {

constexpr std::align_val_t kAlignment{64};

std::byte* Allocate(size_t size) {
  return static_cast<std::byte*>(
      ::operator new(size, kAlignment, std::nothrow));
}
void Free(std::byte* bytes) { ::operator delete(bytes, kAlignment); }

}  // namespace

ReceiveBuffers::~ReceiveBuffers() {
  for (const auto& list : kept_) {
    for (std::byte* bytes : list) Free(bytes);
  }
}

BufferLease ReceiveBuffers::Take(size_t size) {
  if (size == 0) return BufferLease();
  const auto exponent = static_cast<size_t>(std::bit_width(size - 1));
  const bool kept = size >= size_t{1} << kSmallestClass &&
                    exponent < kSmallestClass + kNumClasses;
  const size_t size_class =
      kept ? std::max(exponent, kSmallestClass) - kSmallestClass : 0;
  if (lent_bytes_.fetch_add(size) + size > max_lent_bytes_) {
    lent_bytes_ -= size;
    return BufferLease();
  }
  std::byte* bytes = kept ? TakeKept(size_class) : Allocate(size);
  if (bytes == nullptr) {
    lent_bytes_ -= size;
    return BufferLease();
  }
  return BufferLease({bytes, size}, [self = shared_from_this(), bytes, size,
                                     kept, size_class] {
    self->lent_bytes_ -= size;
    if (kept) {
      self->Return(bytes, size_class);
    } else {
      Free(bytes);
    }
  });
}

std::byte* ReceiveBuffers::TakeKept(size_t size_class) {
  {
    absl::MutexLock lock(&mutex_);
    if (!kept_[size_class].empty()) {
      std::byte* bytes = kept_[size_class].back();
      kept_[size_class].pop_back();
      kept_bytes_ -= size_t{1} << (kSmallestClass + size_class);
      return bytes;
    }
  }
  return Allocate(size_t{1} << (kSmallestClass + size_class));
}

void ReceiveBuffers::Return(std::byte* bytes, size_t size_class) {
  const size_t class_bytes = size_t{1} << (kSmallestClass + size_class);
  {
    absl::MutexLock lock(&mutex_);
    if (kept_bytes_ + class_bytes <= max_kept_bytes_) {
      kept_bytes_ += class_bytes;
      kept_[size_class].push_back(bytes);
      return;
    }
  }
  Free(bytes);
}

size_t ReceiveBuffers::kept_bytes() const {
  absl::MutexLock lock(&mutex_);
  return kept_bytes_;
}

}  // namespace farkv
