// R-KV (arXiv 2505.24133, ALGORITHMS 5): window attention minus redundancy of
// keys. Results name the variant. Pure.
#ifndef FARKV_COMMON_POLICY_RKV_POLICY_H_
#define FARKV_COMMON_POLICY_RKV_POLICY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"
#include "common/policy/ranking.h"

namespace farkv {

enum class RkvVariant : uint8_t {
  kOfficial,  // R-KV's repository
  kMean,      // VaSE's re-implementation: no forgiveness, candidates only
};

// Reads: keys of every row, also of the youngest; window, or mass. A row's
// number depends on all keys of the head, so only a party that has them all can
// rank: rows of several parties cannot be merged.
struct RkvPolicy {
  RkvVariant variant = RkvVariant::kOfficial;
  WindowSettings window;
  // Weight of attention against redundancy, per 10,000.
  int32_t lambda = 1000;
  // A cosine above it marks a near-copy, per 10,000. kOfficial only.
  int32_t threshold = 5000;
  int64_t interval = 128;  // tokens between two events of kOfficial

  // Window 8, maximum pool of 7, lambda .1.
  static RkvPolicy Official();
  // Window 64, average pool of 5, lambda .5.
  static RkvPolicy Mean();

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

// Mean over the rows i of cos(k_i, k_j), diagonal 0, for every row j: how well
// the others stand in for j. With a threshold, each row i first forgives its
// youngest near-copy: the largest j with a cosine above the threshold becomes
// 0, and column 0 for a row that has none (the repository's own side effect).
// A row whose norm is not finite is nobody's copy; its own mean is NaN.
std::vector<float> MeanCosines(const HeadPanels& keys);
std::vector<float> ForgivingMeanCosines(const HeadPanels& keys,
                                        float threshold);

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_RKV_POLICY_H_
