// Sends sealed pages to their nodes in the background. DESIGN 3 and 6.
//
// The engine thread copies a page's rows out of its T0 lines (in stream order,
// on a stream of its own) and goes on; the executor computes the rows' CRCs
// and submits the messages. The answer arrives in the inbox as PageStored.
// Bytes under way are bounded; retries are the caller's business: the rows are
// still in T0, and a store is idempotent.
//
// Thread-compatible: the engine thread calls it.
#ifndef FARKV_GPU_WORKER_TIERING_STORE_PIPELINE_H_
#define FARKV_GPU_WORKER_TIERING_STORE_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/async/executor.h"
#include "common/layout/kv_geometry.h"
#include "gpu_worker/tiering/node_access.h"
#include "gpu_worker/tiering/node_link.h"
#include "gpu_worker/tiering/page_table.h"
#include "gpu_worker/tiering/remote_pages.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "gpu_worker/tiering/tier_events.h"
#include "kernels/stream.h"

namespace farkv {

class StorePipeline {
 public:
  // All borrowed. `max_bytes` bounds the rows under way; one page always fits.
  StorePipeline(Device& device, const KvGeometry& geometry, Executor& executor,
                Inbox& inbox, absl::Duration timeout, uint64_t max_bytes);

  uint64_t page_bytes() const { return page_bytes_; }
  bool HasRoom() const {
    return bytes_ == 0 || bytes_ + page_bytes_ <= max_bytes_;
  }
  bool idle() const { return bytes_ == 0; }

  // Before the first Start; see StoredRowsFilter.
  void SetFilter(StoredRowsFilter filter) { filter_ = std::move(filter); }

  // Starts the store of a full page; its groups are resident, or destroyed.
  // RESOURCE_EXHAUSTED, and nothing has begun, without host memory for it.
  absl::Status Start(SequenceId sequence, SessionId session, const Page& page,
                     const RemotePage& remote, const T0Lines& lines,
                     NodeLink& link);
  // Call for each PageStored.
  void Finished(const PageStored& stored) { bytes_ -= stored.rows_bytes; }
  // Waits until no copy reads T0 any more: before lines are given back.
  void WaitForCopies() { stream_->Synchronize(); }

 private:
  const KvGeometry geometry_;
  Executor& executor_;
  Inbox& inbox_;
  const absl::Duration timeout_;
  const uint64_t max_bytes_;
  const uint64_t page_bytes_;  // all layers
  StoredRowsFilter filter_;
  std::unique_ptr<Stream> stream_;
  uint64_t bytes_ = 0;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_STORE_PIPELINE_H_
