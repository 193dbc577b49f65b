// What the files that implement RemoteTier share. Not for use elsewhere.
#ifndef FARKV_GPU_WORKER_TIERING_REMOTE_TIER_IMPL_H_
#define FARKV_GPU_WORKER_TIERING_REMOTE_TIER_IMPL_H_

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gpu_worker/tiering/remote_tier.h"

namespace farkv {

// From when something failed on a node until it is asked for again.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);

inline absl::Time Now() { return Clock::Boottime().Now(); }

// Null: it was closed meanwhile.
inline Sequence* FindSequence(SequenceMap& sequences, SequenceId id) {
  const auto found = sequences.find(id);
  return found == sequences.end() ? nullptr : found->second.get();
}

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_REMOTE_TIER_IMPL_H_
