// What the cache keeps about one open sequence. Plain state, owned by the
// engine thread.
#ifndef FARKV_GPU_WORKER_TIERING_SEQUENCE_H_
#define FARKV_GPU_WORKER_TIERING_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tiering/page_table.h"
#include "gpu_worker/tiering/run_cache.h"

namespace farkv {

struct Sequence {
  Sequence(SequenceId sequence_id, SequenceSpec sequence_spec, int64_t sets,
           const KvGeometry& geometry, int granularity)
      : id(sequence_id),
        spec(std::move(sequence_spec)),
        share_sets(sets),
        table(geometry, granularity),
        runs(geometry) {
    stats.cold_mode = "none";
  }

  SequenceId id;
  SequenceSpec spec;
  int64_t share_sets;  // promised line sets
  PageTable table;
  RunCache runs;
  // Cumulative attention per position, 2^-40; as long as num_tokens.
  std::vector<int64_t> scores;
  SequenceTierStats stats;

  void NotePeak(const T0Lines& lines) {
    const auto sets = static_cast<uint64_t>(table.resident_sets());
    stats.t0_peak_bytes = std::max(
        stats.t0_peak_bytes, static_cast<int64_t>(sets * lines.set_bytes()));
  }
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_SEQUENCE_H_
