// Metrics that the engine's thread updates (names as OPS 2).
#ifndef FARKV_GPU_WORKER_ENGINE_ENGINE_METRICS_H_
#define FARKV_GPU_WORKER_ENGINE_ENGINE_METRICS_H_

#include "common/telemetry/metrics.h"

namespace farkv {

struct EngineMetrics {
  Counter requests, failures, generated_tokens, prompt_tokens, steps;
  Counter repeated_steps, parked_sequences;
  Counter cold_rows_mapped, cold_rows_fetched, late_fetches, promoted_tokens;
  Histogram step_seconds, queue_seconds, first_token_seconds, token_seconds;

  // With null `metrics` updates go nowhere.
  static EngineMetrics Register(Metrics* metrics);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_ENGINE_METRICS_H_
