// What background threads tell the engine thread: plain values, in one inbox.
// The inbox holds at most what was admitted: one event per command of a link
// and per store under way. Thread-safe.
#ifndef FARKV_GPU_WORKER_TIERING_TIER_EVENTS_H_
#define FARKV_GPU_WORKER_TIERING_TIER_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/rpc/memory_types.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tiering/node_map.h"

namespace farkv {

// One sequence's session on one node. The link's thread writes, any thread
// reads.
struct RemoteSession {
  SessionId id;
  // Nanoseconds of Clock::Boottime(): the worker fences itself from then on.
  // Counted from sending, with a margin before the node's own end.
  std::atomic<int64_t> fence_ns{0};
  // The node has given the session up, or has been restarted.
  std::atomic<bool> lost{false};
  // The link's thread only: the number of the next mutating call, and the one
  // that was sent under it without an answer. Under a number the node knows
  // one plan, so that call is repeated before any other, at `repeat_at` if
  // nothing asks for it before.
  uint64_t next_number = 1;
  std::optional<TierPlanCall> unanswered;
  absl::Time repeat_at;

  bool Usable(absl::Time now) const {
    return !lost.load(std::memory_order_acquire) &&
           absl::ToUnixNanos(now) < fence_ns.load(std::memory_order_acquire);
  }
};

struct SessionReady {
  SequenceId sequence;
  int node = 0;
  absl::StatusOr<std::shared_ptr<RemoteSession>> session;
};
struct PagesReserved {
  SequenceId sequence;
  int node = 0;
  std::vector<PageName> asked;
  absl::StatusOr<std::vector<PagePlacement>> placements;
  std::vector<MappedPage> maps;  // as many, or none where there is no map
};
struct PagesMoved {
  SequenceId sequence;
  int node = 0;
  std::shared_ptr<RemoteSession> session;  // under which they were
  std::vector<TierChange> asked;
  absl::StatusOr<std::vector<PagePlacement>> moved;  // in the order asked
  // Sent, and neither done nor refused as far as is known: repeated until the
  // node says which, in a later event.
  bool unanswered = false;
};
struct PagesEvicted {
  SequenceId sequence;
  int node = 0;
  std::vector<int32_t> pages;  // page indices, as they were given
  absl::Status status;         // not OK: the node may count as before
};
struct PageStored {
  SequenceId sequence;
  int node = 0;
  int32_t page_index = 0;
  Generation generation;  // of layer 0, where it was stored
  uint64_t rows_bytes = 0;
  absl::Status status;
};
struct SessionLost {
  SequenceId sequence;
  int node = 0;
  absl::Status why;
};
// Something that Drain waits for has ended.
struct CommandDone {};

using TierEvent =
    std::variant<SessionReady, PagesReserved, PagesMoved, PagesEvicted,
                 PageStored, SessionLost, CommandDone>;

class Inbox {
 public:
  void Push(TierEvent event) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }
  std::vector<TierEvent> TakeAll() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }
  // False when nothing came within `timeout`.
  bool Wait(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !events_.empty();
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&some), timeout);
  }

 private:
  absl::Mutex mutex_;
  std::vector<TierEvent> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_TIER_EVENTS_H_
