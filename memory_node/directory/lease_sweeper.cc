#include "memory_node/directory/lease_sweeper.h"

#include <utility>

namespace farkv {

LeaseSweeper::LeaseSweeper(Directory& directory, const Clock& clock,
                           RevokedHandler on_revoked)
    : directory_(directory),
      clock_(clock),
      on_revoked_(std::move(on_revoked)),
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
    if (!swept.revoked.empty()) on_revoked_(swept.revoked);
    absl::MutexLock lock(&mutex_);
    const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return poked_ || stop_;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&wanted),
                            swept.next - clock_.Now());
    if (stop_) return;
    poked_ = false;
  }
}

}  // namespace farkv
