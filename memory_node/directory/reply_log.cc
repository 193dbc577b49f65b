#include "memory_node/directory/reply_log.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"

namespace farkv {
namespace {

// An error has its text, and a reason beside it, on the heap.
size_t ExtraBytes(const absl::Status& status) {
  constexpr size_t kError = 256;
  return status.ok() ? 0 : kError + status.message().size();
}

size_t BytesOf(const std::vector<PagePlacement>& placements) {
  size_t bytes = placements.size() * sizeof(PagePlacement);
  for (const PagePlacement& placement : placements) {
    bytes += ExtraBytes(placement.status);
  }
  return bytes;
}

size_t BytesOf(const TierPlanResult& reply) {
  size_t bytes = sizeof(reply) + BytesOf(reply.reserved) + BytesOf(reply.moved);
  for (const absl::Status& status : reply.evictions) {
    bytes += sizeof(status) + ExtraBytes(status);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<const TierPlanResult*> ReplyLog::Find(
    uint64_t sequence_number) const {
  if (sequence_number > last_) return nullptr;
  for (const Entry& entry : replies_) {
    if (entry.number == sequence_number) return &entry.reply;
  }
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "sequence number ", sequence_number, " is not above ",
                        last_, " and not among the last ", replies_.size(),
                        " replies, which are kept (numbers start at 1)")),
                    ErrorReason::kStaleSequenceNumber);
}

void ReplyLog::Add(uint64_t sequence_number, TierPlanResult reply) {
  const size_t bytes = BytesOf(reply);
  last_ = sequence_number;
  bytes_ += bytes;
  replies_.push_back({sequence_number, bytes, std::move(reply)});
  while (replies_.size() > kKept ||
         (bytes_ > kMaxBytes && replies_.size() > 1)) {
    bytes_ -= replies_.front().bytes;
    replies_.pop_front();
  }
}

}  // namespace farkv
