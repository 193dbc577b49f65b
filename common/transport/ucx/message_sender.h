// Puts queued messages on the wire as active messages and tells the operation
// table when a send is final. Engine thread only.
#ifndef FARKV_COMMON_TRANSPORT_UCX_MESSAGE_SENDER_H_
#define FARKV_COMMON_TRANSPORT_UCX_MESSAGE_SENDER_H_

#include <ucp/api/ucp.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/transport/operation_table.h"
#include "common/transport/ucx/endpoints.h"
#include "common/transport/ucx/engine_thread.h"

namespace farkv {

// The active-message id of every message of ours.
inline constexpr unsigned kActiveMessageId = 0;

class MessageSender {
 public:
  // Both outlive the object.
  MessageSender(OperationTable* table, const Endpoints* endpoints,
                int max_operations);
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  void Post(const OperationTable::Outgoing& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Hands what became final to the table; whether anything did.
  bool DeliverFinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Once the worker is gone nothing can touch lent bytes any more: the rest of
  // the sends is final.
  void AbandonAll();

  int in_flight() const { return in_flight_; }

 private:
  // What a send needs until it is final; by slot.
  struct Send {
    MessageSender* owner = nullptr;
    uint32_t slot = 0;
    bool posted = false;
    std::array<ucp_dt_iov_t, kMaxBodyPieces> pieces{};
  };

  static void OnSent(void* request, ucs_status_t status, void* user_data);
  void Finish(Send* send, ucs_status_t status);

  OperationTable* const table_;
  const Endpoints* const endpoints_;
  std::vector<Send> sends_;
  std::vector<std::pair<uint32_t, ucs_status_t>> finished_;
  int in_flight_ = 0;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_MESSAGE_SENDER_H_
