// A callback that is owed exactly one result.
//
// Move-only. Complete() queues the callback with its result on the executor,
// never inline. A completion that is destroyed while still owed delivers
// INTERNAL, so a forgotten path shows up as an error and not as a hang.
// Thread-compatible; the executor is borrowed and outlives the completion.
#ifndef FARKV_COMMON_ASYNC_COMPLETION_H_
#define FARKV_COMMON_ASYNC_COMPLETION_H_

#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/async/executor.h"

namespace farkv {

template <typename T>
class Completion {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<T>) &&>;

  Completion() = default;
  Completion(Executor* executor, Callback callback)
      : executor_(executor), callback_(std::move(callback)) {}
  Completion(Completion&& other) noexcept
      : executor_(other.executor_),
        callback_(std::exchange(other.callback_, nullptr)) {}
  Completion& operator=(Completion&& other) noexcept {
    if (this == &other) return *this;
    Abandon();
    executor_ = other.executor_;
    callback_ = std::exchange(other.callback_, nullptr);
    return *this;
  }
  ~Completion() { Abandon(); }

  // Whether a result is still owed.
  bool pending() const { return static_cast<bool>(callback_); }

  // Delivers `result`; without effect when nothing is owed any more.
  void Complete(absl::StatusOr<T> result) {
    if (!pending()) return;
    executor_->Execute([callback = std::exchange(callback_, nullptr),
                        result = std::move(result)]() mutable {
      std::move(callback)(std::move(result));
    });
  }

 private:
  void Abandon() {
    Complete(absl::InternalError("completion destroyed without a result"));
  }

  Executor* executor_ = nullptr;
  Callback callback_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ASYNC_COMPLETION_H_
