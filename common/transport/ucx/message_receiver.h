// Takes what arrives: checks the header, asks the operation table whether the
// message is wanted, and receives its body into a buffer of our own, so that a
// delivered message owes UCX nothing. A small (eager) body is copied in UCX's
// callback, a large one (rendezvous) is received straight into the buffer.
// Engine thread only.
//
// A body that is being received belongs to UCX until OnBody: it is complete, or
// its connection has ended or was closed by force. Not before, whatever became
// of the operation: a sender that is only slow may still write to it. UCX 1.13
// ends it then, and what a sender does later reaches no memory
// (transport_ucx_rendezvous_test.cc).
//
// Nothing on the wire is trusted: what does not begin as a message fails its
// peer, a message with a bad header or length is dropped and counted, and no
// memory is taken before the length is checked and credited.
#ifndef FARKV_COMMON_TRANSPORT_UCX_MESSAGE_RECEIVER_H_
#define FARKV_COMMON_TRANSPORT_UCX_MESSAGE_RECEIVER_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/transport/operation_table.h"
#include "common/transport/ucx/endpoints.h"
#include "common/transport/ucx/engine_thread.h"
#include "common/transport/ucx/receive_buffers.h"

namespace farkv {

class MessageReceiver {
 public:
  // All outlive the object; `buffers` is where bodies go.
  MessageReceiver(ucp_worker_h worker, OperationTable* table,
                  const Endpoints* endpoints,
                  std::shared_ptr<ReceiveBuffers> buffers)
      : worker_(worker),
        table_(table),
        endpoints_(endpoints),
        buffers_(std::move(buffers)) {}
  MessageReceiver(const MessageReceiver&) = delete;
  MessageReceiver& operator=(const MessageReceiver&) = delete;

  // Registers the callback; the object must stay until the worker is gone.
  absl::Status Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Hands complete messages to the table; whether there were any.
  bool DeliverArrived() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Bodies still being received.
  int in_flight() const { return in_flight_; }

 private:
  struct Receive {
    MessageReceiver* owner = nullptr;
    PeerId peer;
    Message message;
    ucs_status_t status = UCS_INPROGRESS;
  };

  static ucs_status_t OnMessage(void* arg, const void* header,
                                size_t header_length, void* data, size_t length,
                                const ucp_am_recv_param_t* params);
  static void OnBody(void* request, ucs_status_t status, size_t length,
                     void* user_data);

  ucs_status_t Take(std::span<const std::byte> header, void* data,
                    size_t length, const ucp_am_recv_param_t& params)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  void StartBody(std::unique_ptr<Receive> receive, void* data, size_t length)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);

  const ucp_worker_h worker_;
  OperationTable* const table_;
  const Endpoints* const endpoints_;
  const std::shared_ptr<ReceiveBuffers> buffers_;
  std::vector<std::unique_ptr<Receive>> arrived_;
  int in_flight_ = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_MESSAGE_RECEIVER_H_
