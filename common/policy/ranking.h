// What the policies of this folder share when they rank rows. Internal to
// common/policy. Pure.
#ifndef FARKV_COMMON_POLICY_RANKING_H_
#define FARKV_COMMON_POLICY_RANKING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"

namespace farkv {

// One row per position, pinned where the input says so, and the positions below
// `sinks` and the `recent` youngest tokens.
RankedRows StartRanking(const EvictionInput& input, int64_t sinks,
                        int64_t recent);

// Validates the input, and that it has what the policy named `policy` reads.
absl::Status RequireKeys(const EvictionInput& input, const char* policy);
absl::Status RequireValues(const EvictionInput& input, const char* policy);

// Which of ALGORITHMS 4's window scorers.
enum class WindowScorer : uint8_t {
  kCausalMean,     // official and kvpress, after a prompt
  kCandidateMean,  // the VaSE repository's, while decoding
  kGroupMax,       // the R-KV repository's, while decoding
};

struct WindowSettings {
  WindowScorer scorer = WindowScorer::kCausalMean;
  int32_t window = 64;  // youngest tokens, always kept; queries read
  int32_t kernel = 5;   // of the pool; odd

  // INVALID_ARGUMENT naming the field and its range.
  absl::Status Validate() const;
};

// The mass of every row older than the window: the input's own, else computed
// from its window and keys. INVALID_ARGUMENT when it has neither.
absl::StatusOr<std::vector<float>> CandidateMass(const EvictionInput& input,
                                                 const WindowSettings& settings,
                                                 const char* policy);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_RANKING_H_
