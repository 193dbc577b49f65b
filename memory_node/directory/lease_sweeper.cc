#include "memory_node/directory/lease_sweeper.h"

#include <algorithm>
#include <utility>

namespace farkv {

LeaseSweeper::LeaseSweeper(Directory& directory, const Clock& clock,
                           SweptHandler on_swept)
    : directory_(directory),
      clock_(clock),
      on_swept_(std::move(on_swept)),
      thread_([this] { Run(); }) {}

LeaseSweeper::~LeaseSweeper() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void LeaseSweeper::Poke() {
  absl::MutexLock lock(&mutex_);
  poked_ = true;
}

void LeaseSweeper::Run() {
  for (;;) {
    const Directory::SweepResult swept = directory_.Sweep();
    const absl::Time next = std::min(swept.next, on_swept_(swept.revoked));
    absl::MutexLock lock(&mutex_);
    const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return poked_ || stop_;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&wanted), next - clock_.Now());
    if (stop_) return;
    poked_ = false;
  }
}

}  // namespace farkv
