// Where completions run. Never inline in the caller of the thing completed,
// and with no lock held. Thread-safe.
#ifndef FARKV_COMMON_ASYNC_EXECUTOR_H_
#define FARKV_COMMON_ASYNC_EXECUTOR_H_

#include "absl/functional/any_invocable.h"

namespace farkv {

class Executor {
 public:
  virtual ~Executor() = default;
  // Queues `task`. Queues are bounded by construction: every task belongs to
  // an operation that was admitted against a bound of its own (a transport
  // slot, a credit), so Execute never refuses.
  virtual void Execute(absl::AnyInvocable<void() &&> task) = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_ASYNC_EXECUTOR_H_
