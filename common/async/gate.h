// Lets holders in while it is open; after Close() nobody new gets in, and the
// closer waits for those inside, up to a deadline. Thread-safe.
#ifndef FARKV_COMMON_ASYNC_GATE_H_
#define FARKV_COMMON_ASYNC_GATE_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace farkv {

class Gate {
 public:
  // The right to be inside. Move-only; leaves when destroyed. False when the
  // gate was closed already.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Gate* gate_ = nullptr;
  };

  Pass TryEnter();
  // Idempotent.
  void Close();
  // True when nobody is inside any more; false when `timeout` (real time)
  // passed first. Only after Close() does true stay true.
  bool WaitUntilEmpty(absl::Duration timeout);

 private:
  void Leave();

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ASYNC_GATE_H_
