#include "bench/accuracy_engine.h"

#include "bench/engine_run.h"
#include "common/page/page_format.h"

namespace farkv::bench {
namespace {

double TokenBytes(const KvGeometry& geometry, const PageLayout& layout) {
  return geometry.num_layers * static_cast<double>(layout.payload_bytes) /
         kPageTokens;
}

}  // namespace

RowEngine::RowEngine(const AccuracyRunOptions& options,
                     const NodeCluster& cluster, const std::string& model,
                     const KvGeometry& geometry, const AccuracyRow& row)
    : row_(row), geometry_(geometry), ranges_(geometry) {
  options_.model = model;
  options_.threads = options.threads;
  options_.max_sequences = options.batch;
  options_.max_queue = options.batch;
  options_.placement.granularity = options_.tiering.granularity = 16;
  options_.placement.sinks = row.sizes.sinks;
  options_.placement.recent = row.sizes.recent;
  options_.placement.interval = row.sizes.interval;
  options_.placement.hbm_ratio = row.hbm_ratio;
  options_.tiering.t2_ratio = row.t2_ratio;
  options_.tiering.t2_bits = row.t2_bits;
  options_.positions = row.positions;
  if (!row.uses_nodes()) return;
  UseCluster(cluster, ColdMode::kMap, options_);
  options_.tiering.stripe_tokens = 128;
  options_.tiering.spread = true;
  options_.await_stores_every = 16;  // cold rows on a busy machine, too
  if (row.rounding.has_value()) rounding_.emplace(*row.rounding, geometry);
}

StoredRowsFilter RowEngine::filter() {
  if (!rounding_.has_value() && !row_.measures_ranges) return {};
  return [this](int page_index, std::span<std::byte> rows) {
    FilterRows(page_index, rows);
  };
}

void RowEngine::FilterRows(int page_index, std::span<std::byte> rows) {
  if (row_.measures_ranges) ranges_.Add(page_index, rows);
  if (rounding_.has_value()) rounding_->Apply(rows);
}

absl::Status RowEngine::status() const {
  return rounding_.has_value() ? rounding_->status() : absl::OkStatus();
}

double RowEngine::token_bytes() const {
  return TokenBytes(geometry_, PageLayout::T1(geometry_));
}

double RowEngine::t2_token_bytes() const {
  return row_.rounding.has_value()
             ? row_.rounding->TokenBytes(geometry_)
             : TokenBytes(geometry_, PageLayout::T2(geometry_, row_.t2_bits));
}

}  // namespace farkv::bench
