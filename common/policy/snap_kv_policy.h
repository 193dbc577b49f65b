// SnapKV (arXiv 2404.14469, ALGORITHMS 4): attention of the last queries,
// pooled over neighbours, plus the window itself. Three published forms. Pure.
#ifndef FARKV_COMMON_POLICY_SNAP_KV_POLICY_H_
#define FARKV_COMMON_POLICY_SNAP_KV_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/policy/eviction_event.h"
#include "common/policy/eviction_input.h"
#include "common/policy/eviction_rows.h"
#include "common/policy/ranking.h"

namespace farkv {

// Reads: keys and window, or mass. The neighbours of a pool are those in the
// cache, whatever the gap between their positions.
struct SnapKvPolicy {
  // kCausalMean acts once, after the prompt; the others while decoding.
  WindowSettings window;
  // Tokens between two events of kGroupMax.
  int64_t interval = 128;

  // After the prompt, decided per KV head as kvpress does: window 64, average
  // pool of 5.
  static SnapKvPolicy Prompt();
  // The R-KV repository's: window 8, maximum pool of 7, every 128 tokens.
  static SnapKvPolicy Rkv();
  // The VaSE repository's: window 64, average pool of 5, every 64 tokens.
  static SnapKvPolicy Vase();

  absl::Status Validate() const;
  bool IsDue(const EventCounts& counts) const;
  int64_t AlwaysKept(int64_t room) const;
  absl::StatusOr<RankedRows> Rank(const EvictionInput& input) const;
};

}  // namespace farkv

#endif  // FARKV_COMMON_POLICY_SNAP_KV_POLICY_H_
