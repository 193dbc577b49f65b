// How the cache reaches memory nodes: the seam at which tests put nodes of
// their own. Plain values of functions; each may be called from any thread.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_ACCESS_H_
#define FARKV_GPU_WORKER_TIERING_NODE_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/policy/eviction_call.h"
#include "common/rpc/memory_types.h"
#include "common/transport/transport.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gpu_worker/tiering/tiering_options.h"

namespace farkv {

// The control plane of one node; meaning and errors as MemoryClient.
struct ControlCalls {
  std::function<absl::StatusOr<SessionGrant>(const OpenSessionCall& call,
                                             absl::Duration timeout)>
      open_session;
  std::function<absl::StatusOr<RenewResult>(
      Epoch epoch, std::span<const SessionId> sessions, absl::Duration lease,
      absl::Duration timeout)>
      renew_leases;
  std::function<absl::StatusOr<TierPlanResult>(const TierPlanCall& call,
                                               absl::Duration timeout)>
      apply_tier_plan;
  std::function<absl::StatusOr<uint64_t>(SessionId session, Epoch epoch,
                                         uint64_t sequence_number,
                                         absl::Duration timeout)>
      close_session;
  // May be empty: rows are read then, and ranked by the worker.
  std::function<absl::StatusOr<EvictionReply>(const EvictionCall& call,
                                              absl::Duration timeout)>
      decide_evictions;
};

// May change a page's rows on their way to a node: its block of every layer
// (kv_geometry.h), one behind the other. Their checksums are computed
// afterwards and the rows in T0 stay as they are.
using StoredRowsFilter =
    std::function<void(int page_index, std::span<std::byte> rows)>;

struct NodeAccess {
  std::function<absl::StatusOr<ControlCalls>(const std::string& address)>
      control;
  std::function<absl::StatusOr<std::unique_ptr<Transport>>(
      TransportOptions options)>
      transport;
  // Of pauses between tries, and of leases while rows are read in place;
  // outlives the cache.
  const Clock* clock = &Clock::Boottime();
  // For benches; empty: rows are stored as they are.
  StoredRowsFilter stored_rows_filter = {};
};

// gRPC and UCX.
NodeAccess MakeNodeAccess(const TieringOptions& options);

// With room for tiering.MaxIncomingBytes(). A name is looked up within the time
// of a call: the link waits for it, too.
UcxOptions NodeUcxOptions(const TieringOptions& tiering);

// The UCX transport; in the -faults programs inside a fault decorator, as
// options.fault_spec says. Elsewhere INVALID_ARGUMENT for a fault spec and for
// skip_row_checks. Chosen when the program is linked: node_transport.cc or
// node_transport_faults.cc.
absl::StatusOr<std::unique_ptr<Transport>> MakeNodeTransport(
    const TieringOptions& tiering, TransportOptions options);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_ACCESS_H_
