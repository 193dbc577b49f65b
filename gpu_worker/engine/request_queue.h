// Requests that wait for admission, and the names of those that wait or run.
// Also carries questions to the engine's thread, and tells watchers how many
// requests are left. Only Wait functions block. Thread-safe.
#ifndef FARKV_GPU_WORKER_ENGINE_REQUEST_QUEUE_H_
#define FARKV_GPU_WORKER_ENGINE_REQUEST_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gpu_worker/engine/generation.h"
#include "gpu_worker/engine/generation_stream.h"

namespace farkv {

struct WaitingRequest {
  GenerationRequest request;
  std::shared_ptr<GenerationStream> stream;
  absl::Time queued;  // Clock::Boottime()
};

class RequestQueue {
 public:
  explicit RequestQueue(int max_waiting) : max_waiting_(max_waiting) {}

  // Callers. RESOURCE_EXHAUSTED naming the bound, ALREADY_EXISTS naming the
  // id, UNAVAILABLE when draining.
  absl::StatusOr<std::shared_ptr<GenerationStream>> Push(
      GenerationRequest request, absl::Time now);
  bool Abort(const std::string& request_id);
  void SetDraining(bool draining);
  bool draining() const;
  void Stop();
  bool stopped() const;
  // `question` runs once, on the engine's thread between two steps or when it
  // stops. UNAVAILABLE when the engine has stopped, RESOURCE_EXHAUSTED when
  // too many questions are open; then it does not run.
  absl::Status Ask(std::function<void()> question);
  bool WaitIdle(absl::Duration timeout);
  int num_waiting() const;

  // How many requests wait or run, and whether new ones are refused.
  struct Left {
    int requests = 0;
    bool draining = false;
  };
  // Calls `watcher` now and after each change, on the thread that made it, no
  // lock held; calls may overtake each other. RESOURCE_EXHAUSTED when too many
  // watch. A call may still run when Unwatch has returned.
  using Watcher = std::function<void(Left left)>;
  absl::StatusOr<uint64_t> Watch(Watcher watcher);
  void Unwatch(uint64_t id);

  // The engine's thread.
  // Sleeps until there is something to do; false when stopped.
  bool WaitForWork(bool has_running);
  void AnswerQuestions();
  // Takes the oldest; PutBack returns it to the front.
  std::optional<WaitingRequest> Pop();
  void PutBack(WaitingRequest waiting);
  // Takes those that were cancelled or are past their deadline.
  std::vector<WaitingRequest> PopExpired(absl::Time now);
  // All outputs of a request have ended: its id may be used again.
  void Forget(const std::string& request_id);
  std::vector<WaitingRequest> StopAndPopAll();
  void ForEachWaiting(
      const std::function<void(const WaitingRequest&)>& visit) const;

 private:
  Left LeftNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellWatchers();

  const int max_waiting_;
  mutable absl::Mutex mutex_;
  std::deque<WaitingRequest> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<GenerationStream>> names_
      ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> questions_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<const Watcher>> watchers_
      ABSL_GUARDED_BY(mutex_);
  uint64_t last_watcher_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_REQUEST_QUEUE_H_
