// Answers the data-plane messages of workers. DESIGN 6 "Writes" and "Reads",
// 8; common/page/bodies.h has the bytes.
//
// A message whose checksum is wrong is counted and dropped without a reply:
// nothing in it can be trusted, the request id included, so the caller's
// deadline decides. Everything else gets exactly one reply that carries the
// request's id, session, layer and step and this node's epoch. Errors of the
// whole message are the reply's code; errors of one page are that item's.
//
// Handlers run on the transport's executor and hold no lock while they copy (a
// pin keeps the page's memory); attends, which may take long, run on one of
// their own, so that no ping waits behind them. A message that waited for its
// turn longer than its worker waits for an answer is refused, not worked on.
// Bytes of fetched rows on their way and of one attend's leaves, attends that
// wait and peers without a hello are bounded. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_DATA_PLANE_H_
#define FARKV_MEMORY_NODE_DATA_DATA_PLANE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/async/executor.h"
#include "common/base/clock.h"
#include "common/base/thread_pool.h"
#include "common/transport/transport.h"
#include "memory_node/data/attend_handler.h"
#include "memory_node/data/attend_scores.h"
#include "memory_node/data/data_metrics.h"
#include "memory_node/data/peer_shares.h"
#include "memory_node/data/peer_table.h"
#include "memory_node/directory/directory.h"

namespace farkv {

struct DataPlaneOptions {
  // Of replies with rows that wait to be sent; above it fetches of peers that
  // have more than their share are refused with RESOURCE_EXHAUSTED
  // (peer_shares.h).
  size_t max_reply_bytes = size_t{512} << 20;
  // Of attended leaves' weights; beyond it their scores are lost.
  size_t max_score_bytes = size_t{1} << 30;
  // Of the leaves of one attend request, which is refused beyond it.
  uint64_t max_leaf_bytes = kMaxAttendLeafBytes;
  // Attend requests that wait their turn; above it those of peers that have
  // more than their share are refused with RESOURCE_EXHAUSTED (peer_shares.h).
  size_t max_waiting_attends = 1024;
  // Longest that a message waits for its turn whose worker has not told how
  // long it waits for answers.
  absl::Duration longest_wait = absl::Seconds(60);
  PeerLimits peers;
  // Told of a new peer: CloseSilentPeers may be due earlier. On the transport's
  // executor; may be empty.
  std::function<void()> on_new_peer;
};

class DataPlane {
 public:
  // Everything is borrowed and outlives the data plane. `pool` attends.
  DataPlane(const DataPlaneOptions& options, Directory& directory,
            ThreadPool& pool, DataMetrics& metrics, const Clock& clock);
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  // The bounds on replies that the transport of a data plane needs.
  static void BoundReplies(TransportOptions& options);
  // Where replies go; before the first message. The transport must be shut
  // down before the data plane dies.
  void Attach(Transport* transport) { transport_ = transport; }
  // Likewise: where attends run; without it where everything runs. Borrowed
  // until the transport has been shut down and its tasks have ended.
  void AttendOn(Executor* executor) { attends_ = executor; }

  // The transport's handlers.
  void Handle(Incoming incoming);
  void PeerConnected(PeerId peer);
  void PeerLost(PeerId peer) { peers_.Remove(peer); }
  // Closes peers that were silent for too long and those that never said
  // hello. Returns when to call it again; not at all while there are no peers.
  absl::Time CloseSilentPeers();
  // Forgets the scores of sessions that have gone; after a sweep of leases.
  void ForgetClosedSessions();

  // Sets the gauges of `metrics`; before they are shown.
  void ShowGauges();

  // A worker has been given memory to map.
  void NoteMapped(const TokenOwner& owner) { peers_.NoteMapped(owner); }
  std::vector<PeerReport> peers() const { return peers_.List(); }
  // Bytes of replies that the transport still holds.
  size_t reply_bytes() const { return reply_bytes_->total(); }

 private:
  // A reply's code and body pieces.
  struct Answer {
    absl::Status status;
    std::vector<BufferLease> body;
  };
  void AttendInTurn(Incoming incoming);
  Answer DispatchUnlessTooLate(const Incoming& incoming);
  Answer Dispatch(const Incoming& incoming);
  Answer Ping(const Incoming& incoming);
  Answer Hello(const Incoming& incoming);
  Answer Store(const DataCaller& caller, const Incoming& incoming);
  Answer Fetch(const DataCaller& caller, const Incoming& incoming);
  Answer Attend(const DataCaller& caller, const Incoming& incoming);
  Answer Scores(const DataCaller& caller, const Incoming& incoming);
  // Not zeroed. RESOURCE_EXHAUSTED beyond the peer's share.
  absl::StatusOr<BufferLease> ReplyMemory(PeerId peer, size_t bytes);
  OperationMetrics& MetricsOf(MessageType type);
  Answer Run(const DataCaller& caller, const Incoming& incoming);
  AttendContext Context() {
    return {directory_, scores_, pool_, metrics_, options_.max_leaf_bytes};
  }
  void Send(const Incoming& incoming, Answer answer);

  const DataPlaneOptions options_;
  Directory& directory_;
  ThreadPool& pool_;
  DataMetrics& metrics_;
  const Clock& clock_;
  Transport* transport_ = nullptr;
  Executor* attends_ = nullptr;
  PeerTable peers_;
  PeerShares waiting_attends_;
  AttendScores scores_;
  // Shared with the leases of replies, which the transport may hold longer.
  const std::shared_ptr<PeerShares> reply_bytes_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_DATA_PLANE_H_
