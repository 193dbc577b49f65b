// A window of operations and bytes: how much one peer may have in flight.
// Acquire on admission, release when the operation is final. Refuses, never
// waits. Thread-compatible: its owner guards it.
#ifndef FARKV_COMMON_ASYNC_CREDIT_H_
#define FARKV_COMMON_ASYNC_CREDIT_H_

#include <cstddef>

#include "absl/status/status.h"

namespace farkv {

class CreditWindow {
 public:
  CreditWindow(int max_operations, size_t max_bytes);

  // Takes one operation of `bytes`, or RESOURCE_EXHAUSTED naming the bound
  // that was hit. An operation larger than the whole window is let through
  // when nothing else is in flight, so that it cannot be refused for ever.
  absl::Status TryAcquire(size_t bytes);
  // Returns what one TryAcquire took.
  void Release(size_t bytes);

  int operations() const { return operations_; }
  size_t bytes() const { return bytes_; }

 private:
  int max_operations_;
  size_t max_bytes_;
  int operations_ = 0;
  size_t bytes_ = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ASYNC_CREDIT_H_
