#include "gpu_worker/tiering/node_access.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/memory_client.h"

namespace farkv {
namespace {

absl::StatusOr<ControlCalls> MakeControlCalls(const std::string& address,
                                              const TlsOptions& tls) {
  FARKV_ASSIGN_OR_RETURN(std::shared_ptr<MemoryClient> client,
                         MemoryClient::Create(address, tls));
  ControlCalls calls;
  calls.open_session = [client](const OpenSessionCall& call,
                                absl::Duration timeout) {
    return client->OpenSession(call, timeout);
  };
  calls.renew_leases = [client](Epoch epoch,
                                std::span<const SessionId> sessions,
                                absl::Duration lease, absl::Duration timeout) {
    return client->RenewLeases(epoch, sessions, lease, timeout);
  };
  calls.apply_tier_plan = [client](const TierPlanCall& call,
                                   absl::Duration timeout) {
    return client->ApplyTierPlan(call, timeout);
  };
  calls.close_session = [client](SessionId session, Epoch epoch,
                                 uint64_t sequence_number,
                                 absl::Duration timeout) {
    return client->CloseSession(session, epoch, sequence_number, timeout);
  };
  calls.decide_evictions = [client](const EvictionCall& call,
                                    absl::Duration timeout) {
    return client->DecideEvictions(call, timeout);
  };
  return calls;
}

}  // namespace

UcxOptions NodeUcxOptions(const TieringOptions& tiering) {
  UcxOptions options;
  options.max_incoming_bytes = tiering.MaxIncomingBytes();
  options.resolve_timeout =
      std::min(options.resolve_timeout, tiering.rpc_timeout);
  return options;
}

NodeAccess MakeNodeAccess(const TieringOptions& options) {
  NodeAccess access;
  access.control = [tls = options.tls](const std::string& address) {
    return MakeControlCalls(address, tls);
  };
  access.transport = [options](TransportOptions transport) {
    return MakeNodeTransport(options, std::move(transport));
  };
  return access;
}

}  // namespace farkv
