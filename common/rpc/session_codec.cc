#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/codec_parts.h"
#include "common/rpc/duration_codec.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/memory_codec.h"
#include "common/rpc/status_codec.h"

namespace farkv {

memory::v1::OpenSessionRequest ToProto(const OpenSessionCall& call) {
  memory::v1::OpenSessionRequest proto;
  *proto.mutable_handshake() = ToProto(call.handshake);
  proto.set_session_id(call.session.ToBytes());
  proto.set_tenant(call.tenant);
  *proto.mutable_geometry() = ToProto(call.geometry);
  proto.set_exactness(call.bitwise ? memory::v1::EXACTNESS_BITWISE
                                   : memory::v1::EXACTNESS_ROUNDING);
  *proto.mutable_lease() = ToProto(call.lease);
  proto.set_worker_id(call.worker_id);
  proto.set_continues_request(call.continues_request);
  if (call.data_timeout > absl::ZeroDuration()) {
    *proto.mutable_data_timeout() = ToProto(call.data_timeout);
  }
  return proto;
}

absl::StatusOr<OpenSessionCall> FromProto(
    const memory::v1::OpenSessionRequest& request) {
  OpenSessionCall call;
  call.handshake = FromProto(request.handshake());
  FARKV_ASSIGN_OR_RETURN(call.session,
                         SessionId::FromBytes(request.session_id()));
  call.tenant = request.tenant();
  call.worker_id = request.worker_id();
  call.continues_request = request.continues_request();
  call.data_timeout =
      std::max(absl::ZeroDuration(), FromProto(request.data_timeout()));
  FARKV_ASSIGN_OR_RETURN(call.geometry, FromProto(request.geometry()));
  call.bitwise = request.exactness() != memory::v1::EXACTNESS_ROUNDING;
  call.lease = FromProto(request.lease());
  if (call.lease <= absl::ZeroDuration()) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat(
                          "lease is ", absl::FormatDuration(call.lease),
                          ", must be positive")),
                      ErrorReason::kInvalidField);
  }
  return call;
}

memory::v1::OpenSessionResponse ToProto(const SessionGrant& grant) {
  memory::v1::OpenSessionResponse proto;
  *proto.mutable_handshake() = ToProto(grant.handshake);
  proto.set_node_id(grant.node_id);
  proto.set_epoch(grant.epoch.value);
  *proto.mutable_lease() = ToProto(grant.lease);
  proto.set_data_host(grant.data_host);
  proto.set_data_port(grant.data_port);
  proto.set_map_socket(grant.map_socket);
  proto.set_token(grant.token);
  proto.set_page_stride_bytes(grant.page_stride);
  proto.set_resumed(grant.resumed);
  proto.set_last_sequence_number(grant.last_sequence_number);
  return proto;
}

absl::StatusOr<SessionGrant> FromProto(
    const memory::v1::OpenSessionResponse& response) {
  if (response.data_port() > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("data port is ", response.data_port(), ", above 65535"));
  }
  SessionGrant grant;
  grant.handshake = FromProto(response.handshake());
  grant.node_id = response.node_id();
  grant.epoch = Epoch{response.epoch()};
  grant.lease = FromProto(response.lease());
  grant.data_host = response.data_host();
  grant.data_port = static_cast<uint16_t>(response.data_port());
  grant.map_socket = response.map_socket();
  grant.token = response.token();
  grant.page_stride = response.page_stride_bytes();
  grant.resumed = response.resumed();
  grant.last_sequence_number = response.last_sequence_number();
  return grant;
}

memory::v1::RenewLeasesResponse ToProto(const RenewResult& result) {
  memory::v1::RenewLeasesResponse proto;
  for (const LeaseRenewal& renewal : result.renewals) {
    auto* item = proto.add_results();
    item->set_session_id(renewal.session.ToBytes());
    *item->mutable_lease() = ToProto(renewal.lease);
    if (!renewal.status.ok()) {
      *item->mutable_error() = ToErrorDetail(renewal.status);
    }
  }
  proto.set_pressure(result.pressure);
  proto.set_draining(result.draining);
  return proto;
}

absl::StatusOr<RenewResult> FromProto(
    const memory::v1::RenewLeasesResponse& response) {
  FARKV_RETURN_IF_ERROR(
      CheckCount("results", response.results_size(), kMaxRenewals));
  RenewResult result;
  for (const auto& item : response.results()) {
    LeaseRenewal renewal;
    FARKV_ASSIGN_OR_RETURN(renewal.session,
                           SessionId::FromBytes(item.session_id()));
    renewal.lease = FromProto(item.lease());
    renewal.status = FromErrorDetail(item.error());
    result.renewals.push_back(std::move(renewal));
  }
  result.pressure = response.pressure();
  result.draining = response.draining();
  return result;
}

}  // namespace farkv
