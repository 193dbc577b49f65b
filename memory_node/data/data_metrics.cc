#include "memory_node/data/data_metrics.h"

namespace farkv {

OperationMetrics::OperationMetrics(Metrics& metrics,
                                   const std::string& operation) {
  const std::string prefix = "farkv_node_" + operation;
  requests_ = metrics.AddCounter(prefix + "_requests_total",
                                 "Messages of this kind that were handled");
  bytes_ = metrics.AddCounter(prefix + "_bytes_total", "Bytes of rows moved");
  seconds_ = metrics.AddSecondsHistogram(
      prefix + "_seconds", "From the start of a handler to its reply");
  for (size_t code = 1; code < kCodes; ++code) {
    failures_[code] = metrics.AddCounter(
        prefix + "_failures_total", "Messages, or pages of one, that failed",
        {{"reason",
          absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
  }
}

void OperationMetrics::Count(size_t bytes, absl::Duration took) {
  requests_.Increment();
  bytes_.Increment(static_cast<double>(bytes));
  seconds_.Observe(absl::ToDoubleSeconds(took));
}

void OperationMetrics::CountFailure(absl::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  if (index < kCodes) failures_[index].Increment();
}

DecideMetrics::DecideMetrics(Metrics& metrics)
    : requests(metrics.AddCounter("farkv_node_decide_requests_total",
                                  "Eviction decisions that were answered")),
      rows(metrics.AddCounter("farkv_node_decide_rows_total",
                              "Rows that eviction decisions ranked in place")),
      failures(metrics, "farkv_node_decide_failures_total",
               "Eviction decisions that failed"),
      seconds(metrics.AddSecondsHistogram("farkv_node_decide_seconds",
                                          "From the start of a decision to its "
                                          "answer")) {}

namespace {

Counter ClosedPeers(Metrics& metrics, const char* reason) {
  return metrics.AddCounter("farkv_node_closed_peers_total",
                            "Data-plane connections that the node closed",
                            {{"reason", reason}});
}

}  // namespace

DataMetrics::DataMetrics(Metrics& metrics)
    : store(metrics, "store"),
      fetch(metrics, "fetch"),
      attend(metrics, "attend"),
      decide(metrics),
      answered_requests(
          metrics.AddCounter("farkv_node_answered_requests_total",
                             "Requests whose reply the transport took")),
      unanswered_requests(
          metrics.AddCounter("farkv_node_unanswered_requests_total",
                             "Requests whose peer had gone before the reply")),
      dropped_messages(metrics.AddCounter(
          "farkv_node_dropped_messages_total",
          "Messages dropped because their checksum was wrong")),
      checksum_failures(metrics.AddCounter(
          "farkv_node_checksum_failures_total",
          "Rows whose checksum was wrong, in a store or in the pool")),
      rejected_peers(metrics.AddCounter("farkv_node_rejected_peers_total",
                                        "Peers without a valid token")),
      closed_silent(ClosedPeers(metrics, "silent")),
      closed_without_hello(ClosedPeers(metrics, "no_hello")),
      closed_too_many(ClosedPeers(metrics, "too_many")),
      unproven_peers(metrics.AddGauge(
          "farkv_node_unproven_peers",
          "Data-plane connections that have not said hello yet")),
      waiting_attends(metrics.AddGauge("farkv_node_waiting_attends",
                                       "Attend requests that wait their turn")),
      lost_scores(metrics.AddCounter(
          "farkv_node_lost_scores_total",
          "Attended layers whose weights were not kept for want of room")) {}

}  // namespace farkv
