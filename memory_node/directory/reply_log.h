// The last replies of one session, so that a retry of a mutating call gets the
// reply of the first try and changes nothing twice. Bounded in number and,
// since a reply may name thousands of pages, in bytes; the last one is always
// there. A worker has one call at a time under way in a session and repeats no
// other, so what is dropped is what it has had an answer to. A number whose
// reply was dropped is refused: it changes nothing either. Thread-compatible.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_REPLY_LOG_H_
#define FARKV_MEMORY_NODE_DIRECTORY_REPLY_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "common/rpc/memory_types.h"

namespace farkv {

class ReplyLog {
 public:
  static constexpr size_t kKept = 64;
  // Far above 64 replies to an interval's reservations (30 KiB each for 80
  // layers of 4 pages), far below what 64 of the longest would take.
  static constexpr size_t kMaxBytes = size_t{2} << 20;

  // The kept reply, or nullptr when `sequence_number` is a new one.
  // FAILED_PRECONDITION (kStaleSequenceNumber) when it is neither.
  absl::StatusOr<const TierPlanResult*> Find(uint64_t sequence_number) const;
  // Keeps the reply of a new number. Calls that fail change nothing and are
  // not kept: the same number may try again.
  void Add(uint64_t sequence_number, TierPlanResult reply);

  uint64_t last() const { return last_; }
  // Of the kept replies, about: what their parts take in memory.
  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    uint64_t number = 0;
    size_t bytes = 0;
    TierPlanResult reply;
  };

  uint64_t last_ = 0;
  size_t bytes_ = 0;
  std::deque<Entry> replies_;  // ascending
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_REPLY_LOG_H_
