#include "gpu_worker/tiering/node_call.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace farkv {
namespace {

constexpr int kTries = 2;
// For handling the last reply.
constexpr absl::Duration kMargin = absl::Seconds(1);

}  // namespace

std::shared_ptr<NodeCall> NodeCall::Start(NodeLink& link, MessageHeader header,
                                          std::vector<std::byte> body,
                                          absl::Duration timeout,
                                          Accept accept) {
  std::shared_ptr<NodeCall> call(
      new NodeCall(link, header, std::move(body), timeout, std::move(accept)));
  call->Submit();
  return call;
}

void NodeCall::Submit() {
  ++tries_;
  std::vector<BufferLease> pieces;
  pieces.push_back(BufferLease::Owning(body_));
  absl::Status submitted =
      link_.Submit(header_, std::move(pieces), timeout_,
                   [self = shared_from_this()](absl::StatusOr<Message> reply) {
                     self->Receive(std::move(reply));
                   });
  if (!submitted.ok()) Receive(submitted);
}

absl::Status NodeCall::Check(absl::StatusOr<Message> reply) const {
  FARKV_RETURN_IF_ERROR(reply.status());
  FARKV_RETURN_IF_ERROR(CheckMessage(reply->header_bytes, reply->body.bytes()));
  return accept_(*reply);
}

void NodeCall::Receive(absl::StatusOr<Message> reply) {
  absl::Status status = Check(std::move(reply));
  if (absl::IsDataLoss(status)) link_.Count(NodeFault::kDamagedAnswer);
  const bool repeat = !status.ok() && !absl::IsResourceExhausted(status);
  if (repeat && tries_ < kTries) return Submit();
  absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
  done_ = true;
}

absl::Status NodeCall::Wait() const {
  const absl::Duration limit = kTries * timeout_ + kMargin;
  absl::MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithTimeout(absl::Condition(&done_), limit)) {
    return absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(limit)));
  }
  return status_;
}

}  // namespace farkv
