// The nodes' side of the cache: links, sessions, reservations one interval
// ahead, and stores, oldest page first. DESIGN 3, 6 and 13.
//
// Nothing here waits: what is late leaves its rows in T0. Thread-compatible:
// the engine thread owns it; links and stores answer through the inbox.
#ifndef FARKV_GPU_WORKER_TIERING_REMOTE_TIER_H_
#define FARKV_GPU_WORKER_TIERING_REMOTE_TIER_H_

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/async/thread_executor.h"
#include "gpu_worker/tiering/node_access.h"
#include "gpu_worker/tiering/node_link.h"
#include "gpu_worker/tiering/sequence.h"
#include "gpu_worker/tiering/store_pipeline.h"
#include "gpu_worker/tiering/t0_lines.h"
#include "gpu_worker/tiering/tier_events.h"

namespace farkv {

using SequenceMap = absl::flat_hash_map<SequenceId, std::unique_ptr<Sequence>>;

class RemoteTier {
 public:
  // Connects to every node of `options`; both outlive the tier.
  static absl::StatusOr<std::unique_ptr<RemoteTier>> Create(
      const TieringOptions& options, const KvGeometry& geometry, Device& device,
      const NodeAccess& access);
  // Ends all operations; sessions must have been closed before.
  ~RemoteTier();

  std::span<const std::unique_ptr<NodeLink>> links() const { return links_; }

  void Opened(Sequence& sequence);
  // Closes its sessions in the background; its lines may go at once after.
  void Closed(Sequence& sequence);

  // Forgets where the pages of these positions lie, as do nodes that live: they
  // will be stored anew, elsewhere if that can be.
  void GiveUp(Sequence& sequence, std::span<const int64_t> positions);

  // Takes what the background has reported, and drops what may go since.
  void Poll(SequenceMap& sequences, T0Lines& lines);
  // Whether polls since the last call have found that a store has ended or that
  // a node answers again: more may be dropped than before.
  bool TakeProgress() { return std::exchange(progress_, false); }
  // Opens sessions, reserves and stores what is due for one sequence, and tells
  // nodes which rows are destroyed.
  void Advance(Sequence& sequence, const T0Lines& lines);

  // Has nodes compress the stored T1 pages `pages` (page indices); their rows
  // are read as T2 from the answer on. Pages that stay T1, for want of room or
  // else, may be named again.
  void Compress(Sequence& sequence, std::span<const int> pages);

  // Waits until the background reports something. False after `timeout`.
  bool WaitForEvents(absl::Duration timeout) { return inbox_.Wait(timeout); }
  // The same, and until something that failed is due again. False at once when
  // nothing is under way and nothing is to be repeated.
  bool WaitForProgress(const SequenceMap& sequences, absl::Duration timeout);
  // Why the node that was asked last took no page, in words that begin with
  // its name; empty when it took some.
  const std::string& last_refusal() const { return last_refusal_; }
  // Some node takes pages, or may as far as is known.
  bool AnyHealthy() const;
  // No command of a link and no store is under way.
  bool Idle() const;
  // Whether nodes may be asked to compress now.
  static bool MayCompress(const Sequence& sequence);
  // Pages that are full and may still be stored.
  static int64_t UnstoredPages(const Sequence& sequence);

 private:
  RemoteTier(const TieringOptions& options, const KvGeometry& geometry,
             Device& device);

  void Handle(SessionReady event, SequenceMap& sequences);
  void Handle(PagesReserved event, SequenceMap& sequences);
  void Handle(const PagesMoved& event, SequenceMap& sequences);
  void Handle(const PagesEvicted& event, SequenceMap& sequences);
  void Handle(const PageStored& event, SequenceMap& sequences, T0Lines& lines);
  void Handle(const SessionLost& event, SequenceMap& sequences);
  void NoteRefusal(int node, const absl::Status& status);
  absl::Status RecordPlaces(Sequence& sequence, PagesReserved& event);
  // Whether one answers that did not.
  bool LookAtNodes(Sequence& sequence) const;
  void PreferNodes(Sequence& sequence) const;
  static bool NeedsPlace(const Sequence& sequence, int page_index);
  void Reserve(Sequence& sequence);
  void Store(Sequence& sequence, const T0Lines& lines);
  void Evict(Sequence& sequence);
  // Has the node forget pages, in the background, if it lives.
  void Free(const Sequence& sequence, int node,
            std::span<const PageName> names);
  int WantedPages(const Sequence& sequence) const;
  // The node is healthy and would not refuse for draining.
  bool MayTakePages(const Sequence& sequence, int node) const;
  // Where a page without a place goes; -1: nowhere now.
  int NodeFor(const Sequence& sequence, int32_t page_index) const;
  absl::Time NextRetry(const Sequence& sequence, absl::Time now) const;
  NodeLink& link(int node) const { return *links_[static_cast<size_t>(node)]; }

  const TieringOptions& options_;
  const KvGeometry geometry_;
  const Clock* clock_ = &Clock::Boottime();  // of calls about destroyed rows
  // In the order of construction: each uses those above it.
  Inbox inbox_;
  ThreadExecutor executor_;
  std::vector<std::unique_ptr<NodeLink>> links_;
  StorePipeline stores_;
  bool compress_refusal_logged_ = false;
  std::string last_refusal_;
  bool progress_ = false;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_REMOTE_TIER_H_
