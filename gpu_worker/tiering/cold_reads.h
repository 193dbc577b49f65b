// The cold rows of a step, layer by layer: read in place on mapped nodes,
// fetched ahead from the others. DESIGN 5.5 and 6.
//
// While layer l computes, the rows of the next `prefetch_layers` layers are on
// their way; the last layers ask for the first ones of the next step, which
// are used if the same rows are still cold then. Nothing fetched is kept
// longer. Staging is bounded: a layer ahead waits for room, the computing
// layer never does.
//
// Thread-compatible: the engine thread owns it.
#ifndef FARKV_GPU_WORKER_TIERING_COLD_READS_H_
#define FARKV_GPU_WORKER_TIERING_COLD_READS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "gpu_worker/tiering/fetch_operation.h"
#include "gpu_worker/tiering/node_link.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/step.h"
#include "gpu_worker/tiering/tiering_options.h"
#include "kernels/stream.h"

namespace farkv {

class ColdReads {
 public:
  // Borrowed parts outlive it. `clock`: of the leases that mapped reads check.
  ColdReads(const TieringOptions& options, const KvGeometry& geometry,
            Device& device, std::span<const std::unique_ptr<NodeLink>> links,
            const Clock& clock);

  // Finds the cold pages of all parts and asks for the first layers. Parts of
  // one row, unless scored per head, leave pages to their nodes where
  // `pushdown` says so, by node, and where there are more than a step may fetch
  // of a node that is `able` to attend. Nothing is asked for on an error:
  // UNAVAILABLE when rows are lost, ABORTED when a lease changed meanwhile, the
  // sequences are in `failed` then;
  // OUT_OF_RANGE naming node and bytes when a layer has more to fetch than
  // max_layer_fetch_bytes.
  absl::Status Begin(std::span<StepPart> parts,
                     const std::vector<bool>& pushdown,
                     const std::vector<bool>& able,
                     std::vector<SequenceId>& failed);
  // Of the step that Begin began; rises.
  uint64_t step_number() const { return step_number_; }
  // The cold blocks of `layer`, one list per part; empty when nothing of the
  // step is cold. UNAVAILABLE naming node, layer and page; `failed` then names
  // the sequences whose rows are lost. FAILED_PRECONDITION: no room to receive
  // them, in the transport or on the device. ABORTED when a mapped page may not
  // be read in place: the step that repeats this one fetches it.
  absl::StatusOr<std::span<const std::vector<ColdBlock>>> Layer(
      int layer, Stream& stream, std::vector<SequenceId>& failed);
  // The same for the parts that select in `layer`, after Layer(), and once
  // their rows have been chosen: asks for the cold ones of those, and waits.
  // Lists of other parts are as they were.
  absl::StatusOr<std::span<const std::vector<ColdBlock>>> SelectedLayer(
      int layer, Stream& stream, std::vector<SequenceId>& failed);
  // What the step has waited for rows so far.
  absl::Duration waited() const { return waited_; }
  // Layers of all steps that had to wait for fetched rows.
  int64_t late_layers() const { return late_layers_; }
  // After the stream was synchronised: ABORTED when a mapped page was given
  // away, or a lease ran out, while the step read it.
  absl::Status Recheck() const;
  // Ends the step; `keep` keeps what was asked for the next one.
  void End(bool keep);

  // Between steps, for who decides which rows to destroy: the sequence's cold
  // pages, mapped or fetched; what has to be fetched of one layer; its blocks,
  // valid as long as `fetches` and the map. AwaitLayer waits until `end` at
  // most. Errors as Layer. Nothing counts as read by attention.
  std::vector<ReadPage> ColdPages(const Sequence& sequence) const;
  void FetchLayer(Sequence& sequence, int layer,
                  std::span<const ReadPage> pages,
                  std::vector<std::shared_ptr<FetchOperation>>& fetches);
  absl::Status AwaitLayer(Sequence& sequence, int layer,
                          std::span<const ReadPage> pages,
                          std::vector<std::shared_ptr<FetchOperation>>& fetches,
                          absl::Time end, std::vector<ColdBlock>& blocks);
  // Recheck for the mapped ones of `pages`.
  absl::Status RecheckMapped(const Sequence& sequence,
                             std::span<const ReadPage> pages) const;

  // Asks for `pages` of every layer, for a promotion.
  void FetchAllLayers(Sequence& sequence, std::span<const ReadPage> pages,
                      std::vector<std::shared_ptr<FetchOperation>>& fetches);

  uint64_t staging_bytes() const {
    return load_.bytes.load(std::memory_order_relaxed);
  }
  // Whether rows that nobody waits for may be asked for now: `bytes` in
  // `operations` more fetches.
  bool HasRoomAhead(uint64_t bytes, int operations) const;
  int FetchesPerPromotion() const {
    return geometry_.num_layers * static_cast<int>(links_.size());
  }

 private:
  // For errors.
  static std::string Where(const Sequence& sequence, const NodeLink& link,
                           int layer, int32_t page_index);
  bool HasPages() const;
  uint64_t LayerBytes(const Sequence& sequence, int node) const;
  absl::Status CheckLayerFits() const;
  void LeaveToNodes(Sequence& sequence, const std::vector<bool>& able) const;
  absl::Status CheckRowsAreThere(std::vector<SequenceId>& failed) const;
  bool FetchesMapped(const Sequence& sequence, int node) const;
  absl::Status CheckReads(Sequence& sequence,
                          const std::vector<bool>& healthy) const;
  // Those with cold slots at positions below `end`.
  std::vector<ReadPage> ListPages(const Sequence& sequence,
                                  const std::vector<bool>& pushdown,
                                  int64_t end) const;
  static void NoteLoss(Sequence& sequence, const FetchOperation& fetch,
                       int node, bool answers);
  void Request(Sequence& sequence, int layer, bool ahead);
  static void NoteStaging(Sequence& sequence);
  std::vector<uint64_t> LiveOfT2(const Sequence& sequence, const ReadPage& read,
                                 const PagePlace& place, int layer) const;
  void Fetch(Sequence& sequence, int layer, std::span<const ReadPage> pages,
             std::vector<std::shared_ptr<FetchOperation>>& fetches);
  void NoteLate(Sequence& sequence, int layer);
  bool LeaseHolds(const Sequence& sequence, int node) const;
  absl::Status CheckMapped(Sequence& sequence, const ReadPage& read, int layer);
  // Of a page that no node has any more: UNAVAILABLE.
  static absl::Status CheckPlace(const Sequence& sequence,
                                 const ReadPage& read);
  absl::StatusOr<ColdBlock> MappedBlock(Sequence& sequence,
                                        const ReadPage& read, int layer);
  absl::Status AddMapped(Sequence& sequence, int layer,
                         std::span<const ReadPage> pages,
                         std::vector<ColdBlock>& blocks);
  absl::Status AddFetched(Sequence& sequence, int layer,
                          std::vector<ColdBlock>& blocks);
  // The blocks of `pages`, whose fetches are under way, by page index; notes
  // the sequence in `failed` when its rows are lost.
  absl::Status CollectBlocks(Sequence& sequence, int layer,
                             std::span<const ReadPage> pages,
                             std::vector<ColdBlock>& blocks,
                             std::vector<SequenceId>& failed);
  absl::Status Await(std::shared_ptr<FetchOperation>& fetch, NodeLink& link,
                     absl::Time end);
  absl::Time FetchDeadline() const;
  absl::Status NoDeviceMemory(const ColdBlock& block, size_t bytes,
                              const absl::Status& why) const;
  absl::Status MoveToDevice(std::vector<ColdBlock>& blocks, Stream& stream);
  void ReleaseLayer(int layer, Stream& stream);

  const TieringOptions& options_;
  const KvGeometry geometry_;
  Device& device_;
  const std::span<const std::unique_ptr<NodeLink>> links_;
  const Clock& clock_;
  FetchLoad load_;

  std::span<StepPart> parts_;
  uint64_t step_number_ = 0;
  absl::Duration waited_;
  int64_t late_layers_ = 0;
  int last_late_layer_ = -1;  // of this step
  // Of the layer that Layer() returned last.
  std::vector<std::vector<ColdBlock>> blocks_;
  // Copies for devices that cannot read host memory, and their layer.
  std::shared_ptr<std::vector<DeviceBuffer>> device_rows_;
  int layer_in_use_ = -1;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_COLD_READS_H_
