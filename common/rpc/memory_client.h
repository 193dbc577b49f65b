// A worker's view of one memory node's control plane, in domain types. Calls
// block up to `timeout` and are retried inside it where a retry is safe
// (sequence numbers make mutating calls so). Addressed one by one, never
// through a balancing channel.
//
// Errors: UNAVAILABLE and DEADLINE_EXCEEDED name the address; others carry the
// node's message and an ErrorReason (common/rpc/error_reason.h).
// Thread-safe.
#ifndef FARKV_COMMON_RPC_MEMORY_CLIENT_H_
#define FARKV_COMMON_RPC_MEMORY_CLIENT_H_

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/policy/eviction_call.h"
#include "common/rpc/memory_types.h"
#include "common/rpc/tls_options.h"

namespace farkv {

class MemoryClient {
 public:
  // `address` is host:port. Connects lazily.
  static absl::StatusOr<std::unique_ptr<MemoryClient>> Create(
      const std::string& address, const TlsOptions& tls);
  ~MemoryClient();

  const std::string& address() const;

  absl::StatusOr<SessionGrant> OpenSession(const OpenSessionCall& call,
                                           absl::Duration timeout);
  absl::StatusOr<RenewResult> RenewLeases(Epoch epoch,
                                          std::span<const SessionId> sessions,
                                          absl::Duration lease,
                                          absl::Duration timeout);
  absl::StatusOr<TierPlanResult> ApplyTierPlan(const TierPlanCall& call,
                                               absl::Duration timeout);
  // At most kMaxCandidates in one call (common/policy/eviction_merge.h splits).
  absl::StatusOr<EvictionReply> DecideEvictions(const EvictionCall& call,
                                                absl::Duration timeout);
  // Returns the number of pages freed.
  absl::StatusOr<uint64_t> CloseSession(SessionId session, Epoch epoch,
                                        uint64_t sequence_number,
                                        absl::Duration timeout);

 private:
  struct Impl;
  explicit MemoryClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_RPC_MEMORY_CLIENT_H_
