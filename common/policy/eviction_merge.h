// One event as several calls, and their answers as one decision: what the party
// that asks (the worker) does with EvictionCall. Pure, thread-safe.
#ifndef FARKV_COMMON_POLICY_EVICTION_MERGE_H_
#define FARKV_COMMON_POLICY_EVICTION_MERGE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/policy/eviction_call.h"

namespace farkv {

// Cuts a call into calls of at most `max_candidates` (above 0) candidates and
// as many rows that are always kept, in order; heads are cut only where the
// answer is ranked rows. Nothing but candidates of a cut head is repeated.
// INVALID_ARGUMENT naming head and counts when one head of a final_list is
// larger.
absl::StatusOr<std::vector<EvictionCall>> SplitCall(
    const EvictionCall& call, int64_t max_candidates = kMaxCandidates);

// The decision for each head of `event`, in its order, from the ranked rows of
// all parties: nodes, and the worker for rows that it ranked itself. `event`
// names every candidate and every row that is always kept; the latter need not
// be ranked by anybody. Equal to one party's decision over all rows. final_list
// of `event` is not looked at.
//
// INVALID_ARGUMENT naming head and counts when a candidate is not ranked or
// twice, so a lost answer destroys nothing; and the errors of ChooseRows.
// FAILED_PRECONDITION for policies whose rows cannot be merged.
absl::StatusOr<std::vector<EvictionDecision>> MergeReplies(
    const EvictionCall& event, std::span<const EvictionReply> replies);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_EVICTION_MERGE_H_
