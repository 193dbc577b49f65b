// The last events that destroyed rows, of all sequences of a cache and also of
// those that have ended: for operators. Thread-compatible; the engine thread
// owns it.
#ifndef FARKV_GPU_WORKER_TIERING_DECISION_LOG_H_
#define FARKV_GPU_WORKER_TIERING_DECISION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/session_handle.h"
#include "gpu_worker/tiering/eviction_record.h"

namespace farkv {

struct LoggedEviction {
  uint64_t id = 0;  // rises by one; never 0
  absl::Time time;  // of the cache's clock
  SessionId session;
  std::string request_id;
  uint64_t request = 0;  // of the draws
  uint64_t seed = 0;
  // Rows of all layers and heads: those that nothing protected, those that
  // stayed, and those that stayed for a number that is not finite.
  int64_t candidates = 0;
  int64_t kept = 0;
  int64_t non_finite = 0;
  int32_t layers_by_nodes = 0;  // whose rows memory nodes ranked
  EvictionRecord record;

  // Of the decision in all layers and heads.
  uint32_t digest() const;
};

// What is asked of the log: up to `count` events with ids below `before`, of
// the sessions that `sessions` matches; newest first.
struct DecisionQuery {
  uint64_t before = std::numeric_limits<uint64_t>::max();
  size_t count = 0;
  std::optional<SessionPattern> sessions;
};

class DecisionLog {
 public:
  // Gives the event its id; the oldest of kMaxEvictionRecords goes.
  void Add(LoggedEviction event);
  std::vector<LoggedEviction> List(const DecisionQuery& query) const;

 private:
  std::deque<LoggedEviction> events_;  // oldest first
  uint64_t last_id_ = 0;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_DECISION_LOG_H_
