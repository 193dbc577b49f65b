// Metrics of a node that are read from snapshots at each scrape. Thread-safe.
#ifndef FARKV_MEMORY_NODE_NODE_GAUGES_H_
#define FARKV_MEMORY_NODE_NODE_GAUGES_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/telemetry/following_counter.h"
#include "common/telemetry/metrics.h"
#include "common/transport/transport_metrics.h"
#include "memory_node/directory/directory.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

class NodeGauges {
 public:
  explicit NodeGauges(Metrics& metrics);

  // `t2`: zeros when there is no T2 pool.
  void Set(const PagePoolStats& pool, const PagePoolStats& t2,
           const DirectoryStats& directory, const TransportCounters& transport);

 private:
  Gauge reserved_pages_, stored_pages_, quarantined_pages_, free_pages_;
  Gauge live_rows_, capacity_, used_, slab_bytes_, ready_bytes_,
      stranded_bytes_, pins_, pressure_;
  Gauge t2_stored_pages_, t2_quarantined_pages_, t2_free_pages_, t2_live_rows_,
      t2_capacity_, t2_used_;
  Gauge sessions_, draining_;
  absl::Mutex mutex_;
  FollowingCounter expired_ ABSL_GUARDED_BY(mutex_);
  FollowingCounter compressed_ ABSL_GUARDED_BY(mutex_);
  TransportMetrics transport_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_NODE_GAUGES_H_
