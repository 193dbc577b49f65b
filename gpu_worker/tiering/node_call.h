// One data-plane request to a node, repeated once when it fails, and a place
// to wait for its end. For small bodies: each try sends a copy.
//
// A refusal for want of room is not repeated. The call keeps itself alive until
// its last reply or deadline has come. Thread-safe.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_CALL_H_
#define FARKV_GPU_WORKER_TIERING_NODE_CALL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/transport/transport.h"
#include "gpu_worker/tiering/node_link.h"

namespace farkv {

class NodeCall : public std::enable_shared_from_this<NodeCall> {
 public:
  // Takes a reply whose checksum is right. Its error counts as the call's. On
  // the link's executor, once for each try at most, never two at a time.
  using Accept = std::function<absl::Status(const Message& reply)>;

  // `link` outlives the call. `timeout` is for one try.
  static std::shared_ptr<NodeCall> Start(NodeLink& link, MessageHeader header,
                                         std::vector<std::byte> body,
                                         absl::Duration timeout, Accept accept);

  // The end of the last try. Returns in bounded time: both tries have their
  // deadline, and a call that has not ended well behind them is given up.
  absl::Status Wait() const;
  // After Wait(): it took more than one try.
  bool repeated() const { return tries_ > 1; }

 private:
  NodeCall(NodeLink& link, MessageHeader header, std::vector<std::byte> body,
           absl::Duration timeout, Accept accept)
      : link_(link),
        header_(header),
        body_(std::move(body)),
        timeout_(timeout),
        accept_(std::move(accept)) {}
  void Submit();
  void Receive(absl::StatusOr<Message> reply);
  absl::Status Check(absl::StatusOr<Message> reply) const;

  NodeLink& link_;
  const MessageHeader header_;
  const std::vector<std::byte> body_;
  const absl::Duration timeout_;
  const Accept accept_;
  int tries_ = 0;  // one thread at a time: the one that submits

  mutable absl::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_CALL_H_
