// The last replies of one session, so that a retry of a mutating call gets the
// reply of the first try and changes nothing twice. Thread-compatible.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_REPLY_LOG_H_
#define FARKV_MEMORY_NODE_DIRECTORY_REPLY_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/memory_types.h"

namespace farkv {

class ReplyLog {
 public:
  static constexpr size_t kKept = 64;

  // The kept reply, or nullptr when `sequence_number` is a new one.
  // FAILED_PRECONDITION (kStaleSequenceNumber) when it is neither.
  absl::StatusOr<const TierPlanResult*> Find(uint64_t sequence_number) const;
  // Keeps the reply of a new number. Calls that fail change nothing and are
  // not kept: the same number may try again.
  void Add(uint64_t sequence_number, TierPlanResult reply);

  uint64_t last() const { return last_; }

 private:
  uint64_t last_ = 0;
  std::deque<std::pair<uint64_t, TierPlanResult>> replies_;  // ascending
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_REPLY_LOG_H_
