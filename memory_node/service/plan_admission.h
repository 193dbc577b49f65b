// How many calls of ApplyTierPlan a node queues and runs at a time.
//
// Plans that compress take seconds and those that do not milliseconds, on
// executors of their own: each kind has its own bound, so that neither refuses
// the other. One session has a bound below both, so that it does not refuse the
// others: a worker has at most one plan of a session under way, and a repeat of
// it whose first try the node has not given up. Thread-safe.
#ifndef FARKV_MEMORY_NODE_SERVICE_PLAN_ADMISSION_H_
#define FARKV_MEMORY_NODE_SERVICE_PLAN_ADMISSION_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace farkv {

struct PlanLimits {
  int plans = 256;
  int compressing = 64;
  int per_session = 4;  // of both kinds
};

class PlanAdmission {
 public:
  explicit PlanAdmission(PlanLimits limits = {}) : limits_(limits) {}
  PlanAdmission(const PlanAdmission&) = delete;
  PlanAdmission& operator=(const PlanAdmission&) = delete;

  // `session`: the id as the call has it. RESOURCE_EXHAUSTED with a hint and
  // the reason kQueueFull, naming the bound; otherwise Leave must follow.
  absl::Status TryEnter(const std::string& session, bool compresses);
  void Leave(const std::string& session, bool compresses);

 private:
  const PlanLimits limits_;
  absl::Mutex mutex_;
  int plans_ ABSL_GUARDED_BY(mutex_) = 0;        // that do not compress
  int compressing_ ABSL_GUARDED_BY(mutex_) = 0;  // that do
  // Of sessions that have any.
  absl::flat_hash_map<std::string, int> by_session_ ABSL_GUARDED_BY(mutex_);
};

// The refusal of a call beyond a bound: there are `count` of `what`.
absl::Status TooManyCalls(int count, const char* what);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_PLAN_ADMISSION_H_
