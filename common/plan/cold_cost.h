// What reading a node's cold rows costs a step, fetched or left to the node, by
// the rates of nodes and links (ALGORITHMS 12.3, DESIGN 5.5). --cold=auto and
// the plan decide by the same functions.
//
//   fetch = bytes / link           on its way while the worker computes
//   push  = layers * round trip + messages / link + rows / node
//
// Pure functions of plain values.
#ifndef FARKV_COMMON_PLAN_COLD_COST_H_
#define FARKV_COMMON_PLAN_COLD_COST_H_

#include <cstdint>
#include <span>

#include "absl/time/time.h"

namespace farkv {

// What one step wants of one node, all layers and sequences together.
struct ColdWork {
  int layers = 0;
  uint64_t fetch_bytes = 0;    // the cold rows, as they travel
  uint64_t attend_rows = 0;    // what the node reads: whole pages
  uint64_t message_bytes = 0;  // queries out, partial results back
  // Rows can be asked for before the layer that reads them has its queries.
  bool ahead = true;
};

// As measured; 0 where nothing is known.
struct NodeFigures {
  double link_bytes_per_second = 0;  // of rows that are fetched
  absl::Duration round_trip;         // of a message without a body
  double attend_rows_per_second = 0;
};

// Infinite where no rate is known that the cost needs, but for the node's: one
// that nobody has asked yet counts as free, so that it is asked.
struct ColdCosts {
  absl::Duration fetch;
  absl::Duration push;
};
ColdCosts CostsOf(const ColdWork& work, const NodeFigures& figures);

// What a step takes the worker without its waits for nodes.
struct OwnTimes {
  absl::Duration fetching;  // and attending to the fetched rows
  absl::Duration pushing;
  // Of the time that nodes attend, the share that the worker waits for; the
  // rest is hidden behind its own leaves.
  double visible_push = 1;
};
struct StepTimes {
  absl::Duration fetch;
  absl::Duration push;
};
StepTimes StepTimesOf(const ColdWork& work, const ColdCosts& costs,
                      const OwnTimes& own);

// `pushes`: what the last step did. The other way must save a tenth of the
// step, so that figures which waver do not make the mode waver.
bool BetterPushedDown(const StepTimes& step, bool pushes);

// Time for `amount` of anything: zero for none of it, infinite without a rate.
absl::Duration TimeFor(uint64_t amount, double per_second);

// Subtrees of the attention tree that a node merges `pages`, ascending, to: as
// many partial results come back.
int CountSubtrees(std::span<const int32_t> pages);

}  // namespace farkv

#endif  // FARKV_COMMON_PLAN_COLD_COST_H_
