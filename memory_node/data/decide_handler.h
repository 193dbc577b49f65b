// Policy arithmetic on stored rows, where they lie (DESIGN 6 "Eviction
// decisions"): the same function as the worker's over the same bits, so the
// same decision (common/policy/eviction_call.h). Changes nothing but the log.
//
// Pages are pinned while they are read, no lock is held, and what is read is
// checked afterwards to be still what the session holds.
#ifndef FARKV_MEMORY_NODE_DATA_DECIDE_HANDLER_H_
#define FARKV_MEMORY_NODE_DATA_DECIDE_HANDLER_H_

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "common/policy/eviction_call.h"
#include "memory_node/data/eviction_log.h"
#include "memory_node/directory/directory.h"

namespace farkv {

// Borrowed for a call. Heads of one call are spread over the pool's threads.
struct DecideContext {
  Directory& directory;
  ThreadPool& pool;
  EvictionLog& log;
  const Clock& clock;
};

// Decides and logs. The errors of EvictionCall::Validate, Directory::BeginRead
// and CheckRead and of the policy; DATA_LOSS for a T2 page that cannot be
// decoded. An error is not logged.
absl::StatusOr<EvictionReply> DecideEvictions(const DecideContext& context,
                                              EvictionCall call);

struct Replay {
  EvictionReply reply;
  bool same = false;  // as the answer that was logged
};

// Computes a decision of the log again from the rows as they are now; it is not
// logged. FAILED_PRECONDITION when its inputs are gone, else as
// DecideEvictions. A row that was compressed since may change it.
absl::StatusOr<Replay> ReplayDecision(const DecideContext& context,
                                      const LoggedDecision& decision);

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_DECIDE_HANDLER_H_
