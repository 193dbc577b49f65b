#include "memory_node/node_gauges.h"

namespace farkv {
namespace {

Gauge Pages(Metrics& metrics, const char* state) {
  return metrics.AddGauge("farkv_node_pages", "Pages of the pool by state",
                          {{"state", state}});
}

Gauge T2Pages(Metrics& metrics, const char* state) {
  return metrics.AddGauge("farkv_node_t2_pages",
                          "Pages of the T2 pool by state", {{"state", state}});
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
      stranded_bytes_(metrics.AddGauge(
          "farkv_node_pool_stranded_bytes",
          "Free bytes that only pages of one tenant and size can have")),
      pins_(metrics.AddGauge("farkv_node_pool_pins",
                             "Copies that run over pages of the pool")),
      pressure_(metrics.AddGauge("farkv_node_pressure",
                                 "1 above the high watermark")),
      t2_stored_pages_(T2Pages(metrics, "stored")),
      t2_quarantined_pages_(T2Pages(metrics, "quarantined")),
      t2_free_pages_(T2Pages(metrics, "free")),
      t2_live_rows_(metrics.AddGauge(
          "farkv_node_t2_live_rows",
          "Those of farkv_node_live_rows that are compressed")),
      t2_capacity_(metrics.AddGauge("farkv_node_t2_pool_capacity_bytes",
                                    "Bound on the memory of the T2 pool")),
      t2_used_(metrics.AddGauge("farkv_node_t2_pool_used_bytes",
                                "Compressed pages")),
      sessions_(metrics.AddGauge("farkv_node_sessions", "Open sessions")),
      draining_(metrics.AddGauge("farkv_node_draining", "1 while draining")),
      expired_(metrics.AddCounter("farkv_node_expired_sessions_total",
                                  "Sessions whose lease ran out")),
      compressed_(metrics.AddCounter("farkv_node_compressed_pages_total",
                                     "Pages that moved from T1 to T2")),
      transport_(metrics, "farkv_node_") {}

void NodeGauges::Set(const PagePoolStats& pool, const PagePoolStats& t2,
                     const DirectoryStats& directory,
                     const TransportCounters& transport) {
  reserved_pages_.Set(ToDouble(directory.reserved_pages));
  stored_pages_.Set(ToDouble(directory.stored_pages - directory.t2_pages));
  quarantined_pages_.Set(ToDouble(pool.quarantined_pages));
  free_pages_.Set(ToDouble(pool.free_pages));
  live_rows_.Set(ToDouble(directory.live_rows));
  capacity_.Set(ToDouble(pool.capacity_bytes));
  used_.Set(ToDouble(pool.used_bytes));
  slab_bytes_.Set(ToDouble(pool.slab_bytes));
  ready_bytes_.Set(ToDouble(pool.ready_bytes));
  stranded_bytes_.Set(ToDouble(pool.stranded_bytes));
  pins_.Set(ToDouble(pool.pins));
  pressure_.Set(pool.pressure ? 1.0 : 0.0);
  t2_stored_pages_.Set(ToDouble(directory.t2_pages));
  t2_quarantined_pages_.Set(ToDouble(t2.quarantined_pages));
  t2_free_pages_.Set(ToDouble(t2.free_pages));
  t2_live_rows_.Set(ToDouble(directory.t2_live_rows));
  t2_capacity_.Set(ToDouble(t2.capacity_bytes));
  t2_used_.Set(ToDouble(t2.used_bytes));
  sessions_.Set(ToDouble(directory.sessions));
  draining_.Set(directory.draining ? 1.0 : 0.0);
  absl::MutexLock lock(&mutex_);
  expired_.Follow(directory.expired_sessions);
  compressed_.Follow(directory.compressed_pages);
  transport_.Set(transport);
}

}  // namespace farkv
