// The last decisions of a node, newest first, for operators, and with their
// inputs, so that each can be computed again from the rows while these are
// there (decide_handler.h). Bounded in number and bytes: when the inputs take
// too much, the oldest decisions lose theirs and keep the digest of the answer.
// Holds positions and attention mass, no row. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_EVICTION_LOG_H_
#define FARKV_MEMORY_NODE_DATA_EVICTION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/session_handle.h"
#include "common/policy/eviction_call.h"

namespace farkv {

struct LoggedDecision {
  uint64_t id = 0;  // rises by one; never 0
  absl::Time time;  // of the node's clock
  SessionId session;
  std::string policy;
  uint64_t event = 0;
  uint64_t request = 0;
  uint64_t seed = 0;
  int64_t num_kept = 0;  // per head
  int64_t num_tokens = 0;
  size_t heads = 0;
  int64_t candidates = 0;
  bool final_list = false;
  // With final_list, of all heads: rows kept, and those kept for a number that
  // is not finite.
  int64_t kept = 0;
  int64_t non_finite = 0;
  uint32_t digest = 0;                       // ReplyDigest
  std::shared_ptr<const EvictionCall> call;  // nullptr: inputs were dropped
};

// CRC32C over everything that an answer says of rows, bits of numbers included;
// the decision's id is left out.
uint32_t ReplyDigest(const EvictionReply& reply);

class EvictionLog {
 public:
  struct Limits {
    size_t decisions = 256;
    size_t input_bytes = size_t{32} << 20;
  };
  EvictionLog() : EvictionLog(Limits{}) {}
  explicit EvictionLog(const Limits& limits) : limits_(limits) {}

  // Returns the decision's id.
  uint64_t Add(EvictionCall call, const EvictionReply& reply, absl::Time now);

  static constexpr uint64_t kNewest = std::numeric_limits<uint64_t>::max();
  // Up to `count` decisions with ids below `before`, newest first; of the
  // sessions that `sessions` matches, of all without it.
  std::vector<LoggedDecision> List(
      uint64_t before, size_t count,
      const std::optional<SessionPattern>& sessions = std::nullopt) const;
  // NOT_FOUND naming the ids that are there.
  absl::StatusOr<LoggedDecision> Find(uint64_t id) const;

  size_t max_decisions() const { return limits_.decisions; }

 private:
  void DropInputs(LoggedDecision& decision)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  std::deque<LoggedDecision> decisions_
      ABSL_GUARDED_BY(mutex_);  // oldest first
  size_t input_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_EVICTION_LOG_H_
