#include "memory_node/pool/pool_filler.h"

#include <utility>

namespace farkv {

PoolFiller::PoolFiller(PagePool& pool, PoolFillerOptions options)
    : pool_(pool), options_(std::move(options)), filling_(options_.threads) {
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this, i] { FillMain(i); });
  }
}

PoolFiller::~PoolFiller() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  pool_.StopMakingAhead();
  for (std::thread& thread : threads_) thread.join();
}

void PoolFiller::FillMain(int index) {
  if (Fill() && options_.on_filled) options_.on_filled(AwaitFilled());
  if (index == 0 && AwaitFilled().ok()) Refill();
}

bool PoolFiller::Fill() {
  for (;;) {
    const absl::StatusOr<bool> made = pool_.MakeAhead();
    if (made.ok() && *made) {
      if (options_.on_progress) options_.on_progress(pool_.stats().slab_bytes);
      continue;
    }
    absl::MutexLock lock(&mutex_);
    status_.Update(made.status());
    if (stopped_) {
      status_.Update(absl::CancelledError("stopped while the pool was filled"));
    }
    return --filling_ == 0;
  }
}

void PoolFiller::Refill() {
  while (pool_.WaitUntilWanted()) {
    const absl::StatusOr<bool> made = pool_.MakeAhead();
    if (!made.ok() && options_.on_refill_error) {
      options_.on_refill_error(made.status());
    }
  }
}

absl::Status PoolFiller::AwaitFilled() const {
  absl::MutexLock lock(&mutex_);
  const auto filled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return filling_ == 0;
  };
  mutex_.Await(absl::Condition(&filled));
  return status_;
}

}  // namespace farkv
