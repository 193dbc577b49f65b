#include "gpu_worker/engine/engine_metrics.h"

namespace farkv {

EngineMetrics EngineMetrics::Register(Metrics* metrics) {
  EngineMetrics m;
  if (metrics == nullptr) return m;
  const std::string p = "farkv_worker_";
  m.requests = metrics->AddCounter(p + "requests_total", "Requests admitted");
  m.failures = FailureCounter(*metrics, p + "request_failures_total",
                              "Requests that ended with an error");
  m.generated_tokens =
      metrics->AddCounter(p + "generated_tokens_total", "Tokens generated");
  m.prompt_tokens =
      metrics->AddCounter(p + "prompt_tokens_total", "Prompt tokens processed");
  m.steps = metrics->AddCounter(p + "steps_total", "Forward passes");
  m.repeated_steps =
      metrics->AddCounter(p + "repeated_steps_total",
                          "Forward passes discarded because a page they read "
                          "was given away meanwhile");
  m.parked_sequences =
      metrics->AddCounter(p + "parked_sequences_total",
                          "Sequences whose lines were dropped to make room");
  m.recoveries = metrics->AddCounter(
      p + "recoveries_total",
      "Sequences that lost rows and were recomputed from their tokens");
  m.recomputed_tokens =
      metrics->AddCounter(p + "recomputed_tokens_total",
                          "Tokens whose rows were computed once more");
  m.cold_rows_mapped =
      metrics->AddCounter(p + "cold_rows_total",
                          "Rows that attention read outside T0, by finished "
                          "requests",
                          {{"mode", "map"}});
  m.cold_rows_fetched =
      metrics->AddCounter(p + "cold_rows_total",
                          "Rows that attention read outside T0, by finished "
                          "requests",
                          {{"mode", "prefetch"}});
  m.cold_rows_pushed_down =
      metrics->AddCounter(p + "cold_rows_total",
                          "Rows that attention read outside T0, by finished "
                          "requests",
                          {{"mode", "pushdown"}});
  m.late_fetches = metrics->AddCounter(
      p + "late_fetches_total", "Layers that waited for their cold rows");
  m.promoted_tokens =
      metrics->AddCounter(p + "promoted_tokens_total", "Tokens moved into T0");
  m.step_seconds =
      metrics->AddSecondsHistogram(p + "step_seconds", "Forward pass");
  m.queue_seconds = metrics->AddSecondsHistogram(p + "queue_seconds",
                                                 "From arrival to admission");
  m.first_token_seconds = metrics->AddSecondsHistogram(
      p + "first_token_seconds", "From admission to the first token");
  m.token_seconds = metrics->AddSecondsHistogram(
      p + "token_seconds", "Between two tokens of a request");
  return m;
}

}  // namespace farkv
