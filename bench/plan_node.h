// What a worker measures of its memory node while it runs some requests.
#ifndef FARKV_BENCH_PLAN_NODE_H_
#define FARKV_BENCH_PLAN_NODE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu_worker/engine/engine.h"

namespace farkv::bench {

// Runs `requests` at once on a fresh engine of `options`, which name one node,
// and returns what it knows of that. `pace`: least time between two tokens, in
// which pings find the link idle. The error of the first request that failed.
absl::StatusOr<PeerStats> MeasurePeer(
    EngineOptions options, const std::vector<GenerationRequest>& requests,
    absl::Duration pace);

}  // namespace farkv::bench

#endif  // FARKV_BENCH_PLAN_NODE_H_
