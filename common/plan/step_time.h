// The predicted time of one decode step, in each cold mode, from what kernels,
// links and nodes reach. DESIGN 5.5 and 10; ALGORITHMS 12.3.
//
//   own       = overhead + products + attention over what the worker reads
//   full      = own over every row
//   map       = own over T0, cold rows at the map's rate
//   prefetch  = max(own over every row, staged bytes / link,
//                   layers * round trip / kPrefetchLayers)
//               + other bytes / link
//   pushdown  = own without attention
//               + max(attention over own leaves, layers * round trip
//                     + messages / link + rows / node)
//   products  = max(weights / memory, 2 * weights * batch / flops)
//
// Staged are those bytes of the next layer for which kStagingBytes has room
// beside the computing one's. A prefetch that would hold more than
// kMaxLayerFetchBytes of a layer runs in parts, as the engine does, and reads
// the weights once for each. Pages that
// are being stored travel the other way, beside all this; a step cannot be
// shorter than they take.
//
// Goals: which resource bounds a step, and which mode is best, within some ten
// percent. Non-goals: prefill, placement plans, waits of the first step, links
// of several workers to one node. Pure functions of plain values.
#ifndef FARKV_COMMON_PLAN_STEP_TIME_H_
#define FARKV_COMMON_PLAN_STEP_TIME_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/plan/cold_cost.h"
#include "common/plan/model_shape.h"
#include "common/plan/sizing.h"

namespace farkv {

// What the machines reach, not what their data sheets say. Bytes are 10^9 to
// the GB, as measured.
struct Rates {
  uint64_t weight_bytes = 0;  // of all products of a step
  double weight_bytes_per_second = 0;
  double flops_per_second = 0;  // of products, a multiplication counts 1
  double attention_bytes_per_second = 0;  // rows of T0
  double mapped_bytes_per_second = 0;     // cold rows on the map
  double node_bytes_per_second = 0;       // attending, each node
  double link_bytes_per_second = 0;  // of the worker, to all nodes together
  absl::Duration round_trip;
  absl::Duration overhead;  // of a step: norms, sampling, the engine

  // INVALID_ARGUMENT naming the field that is not above 0 (round_trip and
  // overhead: below 0), or not finite.
  absl::Status Validate() const;
};

enum class StepMode { kFullCache, kMap, kPrefetch, kPushdown };
// "full cache", "map", "prefetch", "pushdown".
const char* StepModeName(StepMode mode);

// What takes most of a step's visible time.
enum class Bottleneck {
  kOverhead,
  kWeights,     // reading them
  kProducts,    // computing with them
  kAttention,   // over what the worker reads itself
  kMap,         // cold rows on the map
  kLink,        // rows or messages
  kNodeMemory,  // rows that nodes attend to
  kRoundTrips,
  kStores,  // the link, with new pages
};
const char* BottleneckName(Bottleneck bottleneck);

struct ModeTime {
  StepMode mode = StepMode::kFullCache;
  // False: one sequence has more to fetch of a layer than a worker takes in.
  // Then both times are infinite.
  bool possible = true;
  uint64_t link_bytes = 0;         // of a step, both ways, without stores
  absl::Duration step;             // with what the engine overlaps
  absl::Duration without_overlap;  // everything one after the other
  absl::Duration own;              // of the step: what the worker does itself
  absl::Duration waits;            // and waits for the link and nodes
  Bottleneck bottleneck = Bottleneck::kOverhead;
  int parts = 1;  // steps that it takes, one after the other

  // Of all running sequences together.
  double TokensPerSecond(int64_t running) const;
};

// What auto may choose from.
struct ModeSettings {
  bool mapped = false;  // worker and nodes share a host and a --map-dir
  // Nodes add up as the worker does, or --exactness=rounding allows otherwise.
  bool pushdown_allowed = true;
};

struct StepPlan {
  ModeTime full;  // whether or not T0 could hold it: the yardstick
  ModeTime map, prefetch, pushdown;
  // What auto weighs: it knows nothing of staging, and takes a prefetch to be
  // hidden as far as the worker's own time reaches.
  StepTimes weighed;
  StepMode chosen = StepMode::kFullCache;  // by auto; full: nothing is cold
  std::string reason;

  const ModeTime& Of(StepMode mode) const;
};

// INVALID_ARGUMENT as Rates::Validate.
absl::StatusOr<StepPlan> PlanStep(const ModelShape& shape, const Sizes& sizes,
                                  const Rates& rates,
                                  const ModeSettings& settings);

}  // namespace farkv

#endif  // FARKV_COMMON_PLAN_STEP_TIME_H_
