#include "memory_node/node_gauges.h"

namespace farkv {
namespace {

Gauge Pages(Metrics& metrics, const char* state) {
  return metrics.AddGauge("farkv_node_pages", "Pages of the pool by state",
                          {{"state", state}});
}

double ToDouble(uint64_t value) { return static_cast<double>(value); }

}  // namespace

NodeGauges::NodeGauges(Metrics& metrics)
    : reserved_pages_(Pages(metrics, "reserved")),
      stored_pages_(Pages(metrics, "stored")),
      quarantined_pages_(Pages(metrics, "quarantined")),
      free_pages_(Pages(metrics, "free")),
      live_rows_(metrics.AddGauge("farkv_node_live_rows",
                                  "Live rows of all heads in stored pages")),
      capacity_(metrics.AddGauge("farkv_node_pool_capacity_bytes",
                                 "Bound on the memory of the pool")),
      used_(metrics.AddGauge("farkv_node_pool_used_bytes",
                             "Pages that are reserved or stored")),
      slab_bytes_(metrics.AddGauge("farkv_node_pool_slab_bytes",
                                   "Memory of the slabs that exist")),
      ready_bytes_(metrics.AddGauge("farkv_node_pool_ready_bytes",
                                    "Slabs made ahead, of no tenant yet")),
      pins_(metrics.AddGauge("farkv_node_pool_pins",
                             "Copies that run over pages of the pool")),
      pressure_(metrics.AddGauge("farkv_node_pressure",
                                 "1 above the high watermark")),
      sessions_(metrics.AddGauge("farkv_node_sessions", "Open sessions")),
      draining_(metrics.AddGauge("farkv_node_draining", "1 while draining")),
      expired_(metrics.AddCounter("farkv_node_expired_sessions_total",
                                  "Sessions whose lease ran out")),
      transport_(metrics, "farkv_node_") {}

void NodeGauges::Set(const PagePoolStats& pool, const DirectoryStats& directory,
                     const TransportCounters& transport) {
  reserved_pages_.Set(ToDouble(directory.reserved_pages));
  stored_pages_.Set(ToDouble(directory.stored_pages));
  quarantined_pages_.Set(ToDouble(pool.quarantined_pages));
  free_pages_.Set(ToDouble(pool.free_pages));
  live_rows_.Set(ToDouble(directory.live_rows));
  capacity_.Set(ToDouble(pool.capacity_bytes));
  used_.Set(ToDouble(pool.used_bytes));
  slab_bytes_.Set(ToDouble(pool.slab_bytes));
  ready_bytes_.Set(ToDouble(pool.ready_bytes));
  pins_.Set(ToDouble(pool.pins));
  pressure_.Set(pool.pressure ? 1.0 : 0.0);
  sessions_.Set(ToDouble(directory.sessions));
  draining_.Set(directory.draining ? 1.0 : 0.0);
  absl::MutexLock lock(&mutex_);
  expired_.Follow(directory.expired_sessions);
  transport_.Set(transport);
}

}  // namespace farkv
