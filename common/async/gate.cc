#include "common/async/gate.h"

namespace farkv {

Gate::Pass Gate::TryEnter() {
  absl::MutexLock lock(&mutex_);
  if (closed_) return Pass();
  ++inside_;
  return Pass(this);
}

void Gate::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

bool Gate::WaitUntilEmpty(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  auto empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return inside_ == 0;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&empty), timeout);
}

void Gate::Leave() {
  absl::MutexLock lock(&mutex_);
  --inside_;
}

}  // namespace farkv
