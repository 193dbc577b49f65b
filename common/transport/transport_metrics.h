// A transport's counters as metrics of the process. Once everything is quiet,
// operations completed equal operations submitted and none is open; tests hold
// every process to that. Thread-compatible.
#ifndef FARKV_COMMON_TRANSPORT_TRANSPORT_METRICS_H_
#define FARKV_COMMON_TRANSPORT_TRANSPORT_METRICS_H_

#include <string>

#include "common/telemetry/following_counter.h"
#include "common/telemetry/metrics.h"
#include "common/transport/transport.h"

namespace farkv {

class TransportMetrics {
 public:
  // `prefix`: of the program, as "farkv_node_". `labels` name the transport
  // where a process has several.
  TransportMetrics(Metrics& metrics, const std::string& prefix,
                   const MetricLabels& labels = {});

  void Set(const TransportCounters& counters);

 private:
  FollowingCounter submitted_, completed_, requests_, dropped_;
  FollowingCounter sent_, received_;
  Gauge open_, receive_buffers_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_TRANSPORT_METRICS_H_
