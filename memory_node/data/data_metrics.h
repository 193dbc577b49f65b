// Counters of the data plane: request/failure pairs, failures by reason, bytes
// and seconds (OPS 2). Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_DATA_METRICS_H_
#define FARKV_MEMORY_NODE_DATA_DATA_METRICS_H_

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/telemetry/failure_counter.h"
#include "common/telemetry/metrics.h"

namespace farkv {

// One kind of operation, as "store".
class OperationMetrics {
 public:
  OperationMetrics(Metrics& metrics, const std::string& operation);

  // One message: `bytes` of rows moved.
  void Count(size_t bytes, absl::Duration took);
  // A message, or one page of it, that failed.
  void CountFailure(absl::StatusCode code);

 private:
  static constexpr size_t kCodes = 17;  // absl::StatusCode
  Counter requests_;
  Counter bytes_;
  Histogram seconds_;
  std::array<Counter, kCodes> failures_;  // by code
};

// Eviction decisions, which arrive on the control plane.
struct DecideMetrics {
  explicit DecideMetrics(Metrics& metrics);

  Counter requests;
  Counter rows;  // candidates that were ranked, where they lie
  FailureCounter failures;
  Histogram seconds;
};

struct DataMetrics {
  explicit DataMetrics(Metrics& metrics);

  OperationMetrics store;
  OperationMetrics fetch;
  OperationMetrics attend;
  DecideMetrics decide;
  // Of each request that is not dropped: it was answered, or its peer had gone.
  Counter answered_requests;
  Counter unanswered_requests;
  Counter dropped_messages;   // CRC of the message was wrong: no reply
  Counter checksum_failures;  // CRC of a row was wrong
  Counter rejected_peers;     // bad hello
  Counter closed_silent, closed_without_hello, closed_too_many;
  Gauge unproven_peers;   // connected, no hello yet
  Gauge waiting_attends;  // arrived, not begun
  Counter lost_scores;    // layers whose weights were not kept
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_DATA_METRICS_H_
