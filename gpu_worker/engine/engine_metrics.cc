#include "gpu_worker/engine/engine_metrics.h"

#include "common/policy/destruction_policy.h"

namespace farkv {
namespace {

constexpr char kPrefix[] = "farkv_worker_";

void RegisterDestruction(Metrics& metrics, EngineMetrics& m) {
  const std::string p = kPrefix;
  for (const std::string& name : DestructionPolicyNames()) {
    if (!ParseDestructionPolicy(name)->has_value()) continue;  // "none"
    DestructionMetrics& of_policy = m.destruction[name];
    of_policy.rows = metrics.AddCounter(
        p + "destroyed_rows_total",
        "Rows destroyed, all layers and KV heads, by finished requests",
        {{"policy", name}});
    of_policy.events = metrics.AddCounter(
        p + "evictions_total",
        "Events that destroyed rows, by finished requests", {{"policy", name}});
    of_policy.node_events = metrics.AddCounter(
        p + "node_evictions_total",
        "Of these, events for which memory nodes ranked rows",
        {{"policy", name}});
  }
  m.postponed_evictions = metrics.AddCounter(
      p + "postponed_evictions_total",
      "Events that had to wait for rows, by finished requests");
  m.skipped_evictions =
      metrics.AddCounter(p + "skipped_evictions_total",
                         "Events that were given up, by finished requests");
  m.lost_score_collections = metrics.AddCounter(
      p + "lost_score_collections_total",
      "Answers of nodes with scores that did not come, by finished requests");
  m.failed_plans = metrics.AddCounter(
      p + "failed_plans_total",
      "Placement plans that could not be made, by finished requests");
}

Counter AddGroups(Metrics& metrics, const char* result) {
  return metrics.AddCounter(
      std::string(kPrefix) + "selection_groups_total",
      "Groups of rows that --selection read or skipped, all steps, layers that "
      "select and KV heads, by finished requests",
      {{"result", result}});
}

}  // namespace

EngineMetrics EngineMetrics::Register(Metrics* metrics) {
  EngineMetrics m;
  if (metrics == nullptr) return m;
  const std::string p = kPrefix;
  RegisterDestruction(*metrics, m);
  m.selected_groups = AddGroups(*metrics, "read");
  m.skipped_groups = AddGroups(*metrics, "skipped");
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
  m.split_steps = metrics->AddCounter(
      p + "split_steps_total",
      "Forward passes made in two parts because of the size of their cold "
      "rows");
  m.parked_sequences =
      metrics->AddCounter(p + "parked_sequences_total",
                          "Sequences whose lines were dropped to make room");
  m.recoveries = metrics->AddCounter(
      p + "recoveries_total",
      "Sequences that lost rows and were recomputed from their tokens");
  m.partial_recoveries = metrics->AddCounter(
      p + "partial_recoveries_total",
      "Of the recoveries, those that recompute lost rows alone");
  m.partial_recovery_tokens = metrics->AddCounter(
      p + "recovery_tokens_total",
      "Tokens that recoveries set out to recompute", {{"kind", "partial"}});
  m.whole_recovery_tokens = metrics->AddCounter(
      p + "recovery_tokens_total",
      "Tokens that recoveries set out to recompute", {{"kind", "whole"}});
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
  m.undone_promotions = metrics->AddCounter(
      p + "undone_promotions_total",
      "Tokens that a placement plan wanted back in T0 and the next one out "
      "again, by finished requests");
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
