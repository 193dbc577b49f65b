#include "common/transport/transport_metrics.h"

namespace farkv {

TransportMetrics::TransportMetrics(Metrics& metrics, const std::string& prefix,
                                   const MetricLabels& labels) {
  const auto add = [&](const char* name, const char* help) {
    return FollowingCounter(metrics.AddCounter(prefix + name, help, labels));
  };
  submitted_ = add("transport_operations_submitted_total",
                   "Requests that the transport took");
  completed_ = add("transport_operations_completed_total",
                   "Requests that ended: reply, error, deadline or cancel");
  requests_ = add("transport_requests_total", "Requests that arrived");
  dropped_ = add("transport_dropped_messages_total",
                 "Malformed, late or unknown messages");
  sent_ = add("data_sent_bytes_total", "Bytes sent on the data plane");
  received_ =
      add("data_received_bytes_total", "Bytes received on the data plane");
  open_ = metrics.AddGauge(
      prefix + "transport_open_operations",
      "Operations and replies whose result or bytes are still owed", labels);
  receive_buffers_ = metrics.AddGauge(
      prefix + "transport_receive_buffer_bytes",
      "Memory of bodies that are being received or not released yet", labels);
}

void TransportMetrics::Set(const TransportCounters& counters) {
  submitted_.Follow(counters.submitted);
  completed_.Follow(counters.completed);
  requests_.Follow(counters.requests_received);
  dropped_.Follow(counters.dropped_messages);
  sent_.Follow(counters.bytes_sent);
  received_.Follow(counters.bytes_received);
  open_.Set(static_cast<double>(counters.open_operations));
  receive_buffers_.Set(static_cast<double>(counters.receive_buffer_bytes));
}

}  // namespace farkv
