// Metrics that the engine's thread updates (names as OPS 2).
#ifndef FARKV_GPU_WORKER_ENGINE_ENGINE_METRICS_H_
#define FARKV_GPU_WORKER_ENGINE_ENGINE_METRICS_H_

#include <map>
#include <string>

#include "common/telemetry/failure_counter.h"
#include "common/telemetry/metrics.h"

namespace farkv {

// By finished requests.
struct DestructionMetrics {
  Counter rows, events, node_events;
};

struct EngineMetrics {
  Counter requests, generated_tokens, prompt_tokens, steps;
  FailureCounter failures;
  Counter repeated_steps, split_steps, parked_sequences, recoveries,
      recomputed_tokens;
  Counter partial_recoveries, partial_recovery_tokens, whole_recovery_tokens;
  Counter cold_rows_mapped, cold_rows_fetched, cold_rows_pushed_down;
  Counter late_fetches, promoted_tokens, undone_promotions;
  Counter postponed_evictions, skipped_evictions;
  Counter lost_score_collections, failed_plans;
  Counter selected_groups, skipped_groups;
  std::map<std::string, DestructionMetrics> destruction;  // by policy
  Histogram step_seconds, queue_seconds, first_token_seconds, token_seconds;

  // With null `metrics` updates go nowhere.
  static EngineMetrics Register(Metrics* metrics);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_ENGINE_METRICS_H_
