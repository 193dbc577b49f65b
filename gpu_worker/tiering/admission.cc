#include "gpu_worker/tiering/admission.h"

#include <algorithm>

namespace farkv {
namespace {

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t ShareInSets(const SequenceSpec& spec, bool has_nodes) {
  const PlacementSettings& placement = spec.placement;
  const int64_t g = placement.granularity;
  const int64_t whole = DivideUp(spec.max_tokens, g);
  if (!has_nodes) return whole;
  const int64_t prompt = placement.prompt_in_t0 ? spec.prompt_tokens : 0;
  const int64_t guarded =
      prompt + int64_t{placement.sinks} + int64_t{placement.recent};
  const int64_t unprotected = std::max<int64_t>(0, spec.max_tokens - guarded);
  const int64_t planned = unprotected * placement.hbm_ratio / 10000;
  const int64_t tokens =
      guarded + planned + kPageTokens + 2 * int64_t{placement.interval};
  // Prompt, sinks, window and tail each may end inside a group.
  constexpr int64_t kPartialGroups = 4;
  return std::min(whole, DivideUp(tokens, g) + kPartialGroups);
}

}  // namespace farkv
