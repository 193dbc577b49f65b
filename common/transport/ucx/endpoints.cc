#include "common/transport/ucx/endpoints.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/ucx/ucx_status.h"

namespace farkv {
namespace {

// Longest that a close waits for the handshake of its connection.
const absl::Duration kHandshakeLimit = absl::Seconds(2);

// Who asks to be connected, for messages.
std::string NameOf(ucp_conn_request_h request) {
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  if (ucp_conn_request_query(request, &attributes) != UCS_OK) {
    return "unknown address";
  }
  SocketAddress address;
  address.storage = attributes.client_address;
  return address.ToString();
}

absl::StatusOr<uint16_t> PortOf(ucp_listener_h listener) {
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  FARKV_RETURN_IF_ERROR(
      FromUcx(ucp_listener_query(listener, &attributes), "ucp_listener_query"));
  SocketAddress address;
  address.storage = attributes.sockaddr;
  return address.port();
}

}  // namespace

void Endpoints::DestroyListeners() {
  for (const auto& listener : std::exchange(listeners_, {})) {
    ucp_listener_destroy(listener->handle);
  }
}

absl::StatusOr<uint16_t> Endpoints::Listen(const SocketAddress& address) {
  auto listener = std::make_unique<Listener>();
  listener->owner = this;
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                      UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = address.get();
  params.sockaddr.addrlen = address.length;
  params.conn_handler.cb = &OnConnectionRequest;
  params.conn_handler.arg = listener.get();
  const ucs_status_t status =
      ucp_listener_create(worker_, &params, &listener->handle);
  if (status == UCS_ERR_BUSY) {
    return absl::AlreadyExistsError(absl::StrCat(
        "cannot listen on ", address.ToString(), ": the port is taken"));
  }
  FARKV_RETURN_IF_ERROR(
      FromUcx(status, absl::StrCat("cannot listen on ", address.ToString())));
  const ucp_listener_h handle = listener->handle;
  listeners_.push_back(std::move(listener));
  return PortOf(handle);
}

void Endpoints::OnConnectionRequest(ucp_conn_request_h request, void* arg) {
  auto* listener = static_cast<Listener*>(arg);
  listener->owner->pending_.push_back({request, listener->handle});
}

bool Endpoints::AcceptPending() {
  const std::vector<Pending> pending = std::exchange(pending_, {});
  for (const Pending& item : pending) Accept(item.request, item.listener);
  return !pending.empty();
}

void Endpoints::Accept(ucp_conn_request_h request, ucp_listener_h listener) {
  const absl::StatusOr<PeerId> peer = table_->AddPeer(NameOf(request));
  if (!peer.ok()) {
    ucp_listener_reject(listener, request);
    return;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  const absl::Status opened = Open(*peer, params);
  if (!opened.ok()) {
    table_->FailPeer(*peer, opened, false);
    return;
  }
  table_->Announce(*peer);
}

absl::StatusOr<PeerId> Endpoints::Connect(const SocketAddress& address,
                                          const std::string& name) {
  FARKV_ASSIGN_OR_RETURN(const PeerId peer, table_->AddPeer(name));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = address.get();
  params.sockaddr.addrlen = address.length;
  const absl::Status opened = Open(peer, params);
  if (!opened.ok()) {
    table_->FailPeer(peer, opened, false);
    return opened;
  }
  AwaitHandshake(by_peer_[peer].get());
  return peer;
}

// A flush ends when the connection is made, or has failed.
void Endpoints::AwaitHandshake(Connection* connection) {
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &OnSettled;
  params.user_data = connection;
  connection->settled =
      !UCS_PTR_IS_PTR(ucp_ep_flush_nbx(connection->endpoint, &params));
}

void Endpoints::OnSettled(void* request, ucs_status_t, void* user_data) {
  ucp_request_free(request);
  static_cast<Connection*>(user_data)->settled = true;
}

absl::Status Endpoints::Open(PeerId peer, ucp_ep_params_t params) {
  auto connection = std::make_unique<Connection>();
  connection->owner = this;
  connection->peer = peer;
  params.field_mask |=
      UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &OnError;
  params.err_handler.arg = connection.get();
  FARKV_RETURN_IF_ERROR(FromUcx(
      ucp_ep_create(worker_, &params, &connection->endpoint), "ucp_ep_create"));
  by_endpoint_[connection->endpoint] = peer;
  by_peer_[peer] = std::move(connection);
  return absl::OkStatus();
}

void Endpoints::OnError(void* arg, ucp_ep_h, ucs_status_t status) {
  const auto* connection = static_cast<Connection*>(arg);
  connection->owner->table_->FailPeer(connection->peer,
                                      FromUcx(status, "connection lost"), true);
}

void Endpoints::Close(PeerId peer) {
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) {  // was never opened
    table_->RemovePeer(peer);
    return;
  }
  std::unique_ptr<Connection> connection = std::move(found->second);
  by_peer_.erase(found);
  by_endpoint_.erase(connection->endpoint);
  connection->close_by = clock_.Now() + kHandshakeLimit;
  closing_.push_back(std::move(connection));
}

bool Endpoints::PollClosing() {
  std::erase_if(owed_,
                [](const auto& connection) { return connection->settled; });
  std::vector<std::unique_ptr<Connection>> open;
  const size_t before = closing_.size();
  for (std::unique_ptr<Connection>& connection : closing_) {
    if (!PollClose(connection.get())) {
      open.push_back(std::move(connection));
      continue;
    }
    table_->RemovePeer(connection->peer);
    if (!connection->settled) owed_.push_back(std::move(connection));
  }
  closing_ = std::move(open);
  return closing_.size() != before;
}

bool Endpoints::PollClose(Connection* connection) const {
  if (!connection->close_begun) {
    if (!connection->settled && clock_.Now() < connection->close_by) {
      return false;
    }
    connection->close_begun = true;
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    connection->close_request = ucp_ep_close_nbx(connection->endpoint, &params);
  }
  if (UCS_PTR_IS_PTR(connection->close_request)) {
    if (ucp_request_check_status(connection->close_request) == UCS_INPROGRESS) {
      return false;
    }
    ucp_request_free(connection->close_request);
    connection->close_request = nullptr;
  }
  // A flush that never ends must not keep the loop polling for ever.
  return connection->settled ||
         clock_.Now() >= connection->close_by + kHandshakeLimit;
}

ucp_ep_h Endpoints::Find(PeerId peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : found->second->endpoint;
}

const PeerId* Endpoints::FindPeer(ucp_ep_h endpoint) const {
  const auto found = by_endpoint_.find(endpoint);
  return found == by_endpoint_.end() ? nullptr : &found->second;
}

}  // namespace farkv
