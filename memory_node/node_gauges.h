// Gauges of a node that are read from snapshots at each scrape. Thread-safe.
#ifndef FARKV_MEMORY_NODE_NODE_GAUGES_H_
#define FARKV_MEMORY_NODE_NODE_GAUGES_H_

#include "common/telemetry/metrics.h"
#include "common/transport/transport.h"
#include "memory_node/directory/directory.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

class NodeGauges {
 public:
  explicit NodeGauges(Metrics& metrics);

  void Set(const PagePoolStats& pool, const DirectoryStats& directory,
           const TransportCounters& transport);

 private:
  Gauge reserved_pages_, stored_pages_, quarantined_pages_, free_pages_;
  Gauge live_rows_, capacity_, used_, slab_bytes_, pressure_;
  Gauge sessions_, expired_, draining_;
  Gauge sent_, received_, transport_dropped_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_NODE_GAUGES_H_
