#include "common/transport/ucx/message_sender.h"

#include "absl/status/status.h"
#include "common/transport/ucx/ucx_status.h"

namespace farkv {

MessageSender::MessageSender(OperationTable* table, const Endpoints* endpoints,
                             int max_operations)
    : table_(table),
      endpoints_(endpoints),
      sends_(static_cast<size_t>(max_operations)) {
  for (uint32_t slot = 0; slot < sends_.size(); ++slot) {
    sends_[slot].owner = this;
    sends_[slot].slot = slot;
  }
}

void MessageSender::Post(const OperationTable::Outgoing& message) {
  const ucp_ep_h endpoint = endpoints_->Find(message.peer);
  if (endpoint == nullptr) {
    table_->SendFinal(message.slot, absl::UnavailableError("not connected"));
    return;
  }
  Send& send = sends_[message.slot];
  size_t count = 0;
  for (const BufferLease& piece : message.body) {
    if (piece.size() == 0) continue;
    send.pieces[count++] = {piece.bytes().data(), piece.size()};
  }
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_AM_SEND_FLAG_REPLY;  // tells the receiver who we are
  params.cb.send = &OnSent;
  params.user_data = &send;
  const void* buffer = nullptr;
  size_t length = 0;
  if (count == 1) {
    buffer = send.pieces[0].buffer;
    length = send.pieces[0].length;
  } else if (count > 1) {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    params.datatype = UCP_DATATYPE_IOV;
    buffer = send.pieces.data();
    length = count;
  }
  send.posted = true;
  ++in_flight_;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint, kActiveMessageId, message.header->data(),
                      message.header->size(), buffer, length, &params);
  // Done at once or refused at once: UCX does not call back.
  if (!UCS_PTR_IS_PTR(request)) Finish(&send, UCS_PTR_STATUS(request));
}

void MessageSender::OnSent(void* request, ucs_status_t status,
                           void* user_data) {
  auto* send = static_cast<Send*>(user_data);
  ucp_request_free(request);
  send->owner->Finish(send, status);
}

void MessageSender::Finish(Send* send, ucs_status_t status) {
  if (!send->posted) return;
  send->posted = false;
  --in_flight_;
  finished_.emplace_back(send->slot, status);
}

bool MessageSender::DeliverFinished() {
  const auto finished = std::exchange(finished_, {});
  for (const auto& [slot, status] : finished) {
    table_->SendFinal(slot, FromUcx(status, "send failed"));
  }
  return !finished.empty();
}

void MessageSender::AbandonAll() {
  for (Send& send : sends_) Finish(&send, UCS_ERR_CANCELED);
  for (const auto& [slot, status] : std::exchange(finished_, {})) {
    table_->SendFinal(slot, FromUcx(status, "transport closed"));
  }
}

}  // namespace farkv
