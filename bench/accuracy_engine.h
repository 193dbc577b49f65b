// The worker's engine under the settings of a row, and what watches the rows
// that it stores. Thread-compatible.
#ifndef FARKV_BENCH_ACCURACY_ENGINE_H_
#define FARKV_BENCH_ACCURACY_ENGINE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/accuracy_rounding.h"
#include "bench/accuracy_rows.h"
#include "bench/node_cluster.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/engine/engine_options.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv::bench {

struct AccuracyRunOptions {
  int batch = 16;
  int threads = 1;
  absl::Duration pace;  // with nodes; see RunSettings
};

class RowEngine {
 public:
  RowEngine(const AccuracyRunOptions& options, const NodeCluster& cluster,
            const std::string& model, const KvGeometry& geometry,
            const AccuracyRow& row);

  const EngineOptions& options() const { return options_; }
  // Of the rows that its engines store, which must end before this object;
  // empty where nothing is to be done. For RunSettings.
  StoredRowsFilter filter();

  // An error when a page could not be rounded as the row says.
  absl::Status status() const;
  ValueRanges::Summary value_ranges() const { return ranges_.Summarise(); }
  // All layers and heads of one token, in T0 or T1, and in T2.
  double token_bytes() const;
  double t2_token_bytes() const;

 private:
  void FilterRows(int page_index, std::span<std::byte> rows);

  const AccuracyRow& row_;
  const KvGeometry geometry_;
  EngineOptions options_;
  std::optional<RowRounding> rounding_;
  ValueRanges ranges_;
};

}  // namespace farkv::bench

#endif  // FARKV_BENCH_ACCURACY_ENGINE_H_
