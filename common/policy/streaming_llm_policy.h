// StreamingLLM (arXiv 2309.17453, ALGORITHMS 3): the first tokens and the
// youngest. Positions stay absolute here; the paper's compact positions are
// offered for reproduction: CompactPositions and RotateKey. Pure.
#ifndef FARKV_COMMON_POLICY_STREAMING_LLM_POLICY_H_
#define FARKV_COMMON_POLICY_STREAMING_LLM_POLICY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"

namespace farkv {

// Reads nothing but positions.
struct StreamingLlmPolicy {
  int64_t sinks = 4;  // positions [0, sinks)

  absl::Status Validate() const;
  // Every step over the budget.
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

// The paper's positions of kept rows: slot j has position j, so the key of slot
// j must be turned by j - kept[j], and the next query has position kept.size()
// - 1 when its own row is the last one kept.
std::vector<int64_t> CompactDeltas(std::span<const int64_t> kept);

// Turns a key that was rotated for position p so that it fits p + delta. The
// pairs are (c, c + dim / 2), as the worker's model rotates them, and pair c
// turns by delta * inverse_frequencies[c]. `key` has twice as many elements.
// Own sine and cosine, so the bits do not depend on a library.
void RotateKey(std::span<float> key, int64_t delta,
               std::span<const double> inverse_frequencies);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_STREAMING_LLM_POLICY_H_
