#include "common/transport/ucx/message_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/ucx/message_sender.h"
#include "common/transport/ucx/ucx_status.h"

namespace farkv {
namespace {

// The header, once it fits what came with it.
absl::StatusOr<MessageHeader> CheckHeader(std::span<const std::byte> header,
                                          size_t length) {
  absl::StatusOr<MessageHeader> decoded = DecodeHeader(header);
  if (!decoded.ok()) return decoded;
  if (length > kMaxBodyBytes || decoded->body_bytes != length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "message body has ", length, " bytes, its header says ",
        decoded->body_bytes, ", at most ", kMaxBodyBytes, " are allowed"));
  }
  return decoded;
}

}  // namespace

absl::Status MessageReceiver::Start() {
  ucp_am_handler_param_t params{};
  params.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = kActiveMessageId;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = &OnMessage;
  params.arg = this;
  return FromUcx(ucp_worker_set_am_recv_handler(worker_, &params),
                 "ucp_worker_set_am_recv_handler");
}

ucs_status_t MessageReceiver::OnMessage(void* arg, const void* header,
                                        size_t header_length, void* data,
                                        size_t length,
                                        const ucp_am_recv_param_t* params) {
  engine_thread.AssertHeld();
  return static_cast<MessageReceiver*>(arg)->Take(
      {static_cast<const std::byte*>(header), header_length}, data, length,
      *params);
}

// UCS_OK makes UCX drop the data unless a receive of it was started.
ucs_status_t MessageReceiver::Take(std::span<const std::byte> header,
                                   void* data, size_t length,
                                   const ucp_am_recv_param_t& params) {
  const PeerId* peer = (params.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0
                           ? endpoints_->FindPeer(params.reply_ep)
                           : nullptr;
  if (peer == nullptr) {
    table_->CountDropped();
    return UCS_OK;
  }
  const absl::StatusOr<MessageHeader> decoded = CheckHeader(header, length);
  if (!decoded.ok()) {
    table_->CountDropped();
    if (!HasMagic(header)) table_->FailPeer(*peer, decoded.status(), true);
    return UCS_OK;
  }
  if (!table_->Admit(*peer, *decoded)) return UCS_OK;
  auto receive = std::make_unique<Receive>();
  receive->owner = this;
  receive->peer = *peer;
  receive->message.header = *decoded;
  std::copy(header.begin(), header.end(),
            receive->message.header_bytes.begin());
  receive->message.body = buffers_->Take(length);
  if (receive->message.body.size() != length) {
    receive->status = UCS_ERR_NO_MEMORY;
    arrived_.push_back(std::move(receive));
    return UCS_OK;
  }
  if ((params.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    StartBody(std::move(receive), data, length);
    return UCS_INPROGRESS;
  }
  if (length != 0) {
    std::memcpy(receive->message.body.bytes().data(), data, length);
  }
  receive->status = UCS_OK;
  arrived_.push_back(std::move(receive));
  return UCS_OK;
}

void MessageReceiver::StartBody(std::unique_ptr<Receive> receive, void* data,
                                size_t length) {
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = &OnBody;
  params.user_data = receive.get();
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(
      worker_, data, receive->message.body.bytes().data(), length, &params);
  if (UCS_PTR_IS_PTR(request)) {
    ++in_flight_;
    receive.release();  // OnBody takes it back
    return;
  }
  receive->status = UCS_PTR_STATUS(request);
  arrived_.push_back(std::move(receive));
}

void MessageReceiver::OnBody(void* request, ucs_status_t status, size_t,
                             void* user_data) {
  ucp_request_free(request);
  std::unique_ptr<Receive> receive(static_cast<Receive*>(user_data));
  receive->status = status;
  --receive->owner->in_flight_;
  receive->owner->arrived_.push_back(std::move(receive));
}

bool MessageReceiver::DeliverArrived() {
  std::vector<std::unique_ptr<Receive>> arrived = std::exchange(arrived_, {});
  for (const auto& receive : arrived) {
    if (receive->status == UCS_OK) {
      table_->Deliver(receive->peer, std::move(receive->message));
    } else if (receive->status == UCS_ERR_NO_MEMORY) {
      table_->RefuseReceive(receive->peer, receive->message.header);
    } else {
      table_->AbandonReceive(receive->peer, receive->message.header);
    }
  }
  return !arrived.empty();
}

}  // namespace farkv
