// Keys and values of one sequence between two steps, wherever its rows lie: in
// T0 lines, in mapped pages, or fetched. For policies that look at rows before
// they destroy some. One layer at a time; the next one is asked for ahead.
//
// Thread-compatible: the engine thread owns it. Device memory is copied out
// first unless the host may read it.
#ifndef FARKV_GPU_WORKER_TIERING_ROW_READER_H_
#define FARKV_GPU_WORKER_TIERING_ROW_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gpu_worker/tiering/cold_reads.h"
#include "gpu_worker/tiering/host_rows.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "kernels/stream.h"

namespace farkv {

class RowReader {
 public:
  // All borrowed; the table must not change meanwhile. `reads` is null without
  // memory nodes. No layer is waited for longer than `layer_timeout`.
  RowReader(Sequence& sequence, const T0Lines& lines,
            const KvGeometry& geometry, Stream& stream, ColdReads* reads,
            absl::Duration layer_timeout);

  // Makes the live rows of `layer` readable, until the next Load. UNAVAILABLE
  // or DATA_LOSS naming node, layer and page when cold rows did not come.
  absl::Status Load(int layer);
  // The same for the rows in T0 alone.
  void LoadResident(int layer);
  // After Load: one vector of the geometry's dtype. The slot must be alive.
  const std::byte* Key(int head, int64_t position) const;
  const std::byte* Value(int head, int64_t position) const;
  // After the last read: ABORTED when a mapped page was given away, or a lease
  // ran out, meanwhile; then nothing that was read may be used.
  absl::Status Recheck() const;

 private:
  // Where the rows of one page lie, host addresses.
  struct PageRows {
    const std::byte* cold = nullptr;
    uint64_t cold_slots = 0;
    std::vector<const std::byte*> lines;  // by group
  };
  struct Place {
    const std::byte* block = nullptr;
    size_t rows = 0;  // of the block
    size_t row = 0;
  };

  Place Find(int64_t position) const;
  void LoadLines(int layer);
  absl::Status LoadCold(int layer);
  void FetchAhead(int layer);

  Sequence& sequence_;
  const T0Lines& lines_;
  const KvGeometry geometry_;
  Stream& stream_;
  ColdReads* const reads_;
  const absl::Duration layer_timeout_;

  std::vector<ReadPage> cold_pages_;
  std::vector<PageRows> pages_;
  // Copies of lines, when the host cannot read T0.
  HostRows copies_;
  // Of the layer that was loaded, and of the next one.
  std::vector<std::shared_ptr<FetchOperation>> fetches_, next_fetches_;
  int next_layer_ = -1;  // of next_fetches_
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_ROW_READER_H_
