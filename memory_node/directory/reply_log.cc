#include "memory_node/directory/reply_log.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"

namespace farkv {

absl::StatusOr<const TierPlanResult*> ReplyLog::Find(
    uint64_t sequence_number) const {
  if (sequence_number > last_) return nullptr;
  for (const auto& [number, reply] : replies_) {
    if (number == sequence_number) return &reply;
  }
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "sequence number ", sequence_number, " is not above ", last_,
          " and not among the last ", kKept, " replies (numbers start at 1)")),
      ErrorReason::kStaleSequenceNumber);
}

void ReplyLog::Add(uint64_t sequence_number, TierPlanResult reply) {
  last_ = sequence_number;
  replies_.emplace_back(sequence_number, std::move(reply));
  if (replies_.size() > kKept) replies_.pop_front();
}

}  // namespace farkv
