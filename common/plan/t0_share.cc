#include "common/plan/t0_share.h"

#include <algorithm>

namespace farkv {
namespace {

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

uint64_t T0LineBytes(const KvGeometry& geometry, int granularity) {
  constexpr uint64_t kAlignment = 64;
  const uint64_t rows = geometry.BlockBytes(static_cast<size_t>(granularity));
  return (rows + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t T0SetBytes(const KvGeometry& geometry, int granularity) {
  return static_cast<uint64_t>(geometry.num_layers) *
         T0LineBytes(geometry, granularity);
}

int64_t T0ShareInSets(const PlacementSettings& placement, int64_t prompt_tokens,
                      int64_t max_tokens, bool has_nodes) {
  const int64_t g = placement.granularity;
  const int64_t whole = DivideUp(max_tokens, g);
  if (!has_nodes) return whole;
  const int64_t prompt = placement.prompt_in_t0 ? prompt_tokens : 0;
  const int64_t guarded = prompt + placement.sinks + placement.recent;
  const int64_t unprotected = std::max<int64_t>(0, max_tokens - guarded);
  const int64_t planned = ShareOf(placement.hbm_ratio, unprotected);
  const int64_t tokens =
      guarded + planned + kPageTokens + 2 * placement.interval;
  // Prompt, sinks, window and tail each may end inside a group.
  constexpr int64_t kPartialGroups = 4;
  return std::min(whole, DivideUp(tokens, g) + kPartialGroups);
}

}  // namespace farkv
