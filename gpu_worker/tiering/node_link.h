// The worker's link to one memory node: its control plane on a thread of its
// own, so that a slow node delays nobody else, and its data plane.
//
// The thread runs the commands of the engine thread in order (open, reserve,
// close), renews the leases of all sessions and connects again after a loss;
// a second one sends heartbeats. Each remote call has a deadline. A node that
// has answered none of four heartbeats is lost: its operations fail at
// once. A node that came back under another epoch has lost its pages; one that
// renews no lease for longer than it could be held has given them up.
//
// Thread-safe. Results arrive in the inbox.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_LINK_H_
#define FARKV_GPU_WORKER_TIERING_NODE_LINK_H_

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/async/executor.h"
#include "common/base/clock.h"
#include "common/layout/kv_geometry.h"
#include "common/transport/transport.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gpu_worker/tiering/node_access.h"
#include "gpu_worker/tiering/node_rates.h"
#include "gpu_worker/tiering/tier_events.h"

namespace farkv {

// Borrowed parts outlive the link.
struct NodeLinkOptions {
  int index = 0;
  std::string address;  // control plane, host:port
  TieringOptions tiering;
  KvGeometry geometry;
  Executor* executor = nullptr;
  Inbox* inbox = nullptr;
  const Clock* clock = &Clock::Boottime();  // of leases and timers
  // Between two tries of a plan without an answer.
  absl::Duration repeat_pause = absl::Milliseconds(500);
};

// What PeerStats counts of one node.
enum class NodeFault {
  kDamagedAnswer,
  kRepeatedFetch,
  kFailedFetch,
  kFailedStore,
};

class NodeLink {
 public:
  // Opens the link's own session, checks the handshake, connects the data
  // plane. UNAVAILABLE and the like name the address; FAILED_PRECONDITION
  // names what does not agree and both values.
  static absl::StatusOr<std::unique_ptr<NodeLink>> Connect(
      NodeLinkOptions options, const NodeAccess& access);
  // Stop() must have run.
  ~NodeLink();

  // From here on what waits to be opened or reserved is answered CANCELLED.
  // Does not wait, so that several links can stop at once.
  void BeginStop();
  // Closes every session, ends the threads and every operation; their
  // callbacks have been queued when it returns.
  void Stop();

  int index() const { return options_.index; }
  const std::string& node_id() const { return node_id_; }
  const std::string& address() const { return options_.address; }
  bool healthy() const;
  Epoch epoch() const;
  // Whether cold pages are read through a map of the node's memory.
  bool maps() const { return maps_.load(std::memory_order_acquire); }
  // By its last answer. It serves the sessions that are open, and takes new
  // ones of requests that run already.
  bool draining() const { return draining_.load(std::memory_order_acquire); }

  // Answers: SessionReady, PagesReserved, PagesMoved, PagesEvicted,
  // CommandDone.
  // `continues`: see OpenSessionCall::continues_request.
  void OpenSession(SequenceId sequence, SessionId session,
                   bool continues = false);
  void Reserve(SequenceId sequence, std::shared_ptr<RemoteSession> session,
               std::vector<PageName> pages);
  void ChangeTiers(SequenceId sequence, std::shared_ptr<RemoteSession> session,
                   std::vector<TierChange> changes);
  // `pages`: the page indices that it is about, for the answer.
  void Evict(SequenceId sequence, std::shared_ptr<RemoteSession> session,
             std::vector<PageEviction> evictions, std::vector<PageName> free,
             std::vector<int32_t> pages);
  void CloseSession(std::shared_ptr<RemoteSession> session);
  // The node's ranks or decision, its epoch filled in; blocks the caller, not
  // the link, for `timeout` at most. Errors as MemoryClient; UNAVAILABLE when
  // the node is lost, UNIMPLEMENTED when it cannot be asked.
  absl::StatusOr<EvictionReply> DecideEvictions(EvictionCall call,
                                                absl::Duration timeout);
  // Commands that wait or run.
  int pending() const;

  // Sends a data-plane request; its header's epoch is filled in. UNAVAILABLE
  // naming the node when it is lost. `callback` as in Transport::Submit.
  absl::Status Submit(MessageHeader header, std::vector<BufferLease> body,
                      absl::Duration timeout, ReplyCallback callback);

  // Call for each fault that an operation on this node has met.
  void Count(NodeFault fault) {
    faults_[static_cast<size_t>(fault)].fetch_add(1, std::memory_order_relaxed);
  }
  PeerStats Stats() const;

  // What this node and the way to it deliver; whoever moves rows reports to it.
  NodeRates& rates() { return rates_; }

 private:
  struct OpenCommand {
    SequenceId sequence;
    SessionId session;
    bool continues;
  };
  struct ReserveCommand {
    SequenceId sequence;
    std::shared_ptr<RemoteSession> session;
    std::vector<PageName> pages;
  };
  struct ChangeCommand {
    SequenceId sequence;
    std::shared_ptr<RemoteSession> session;
    std::vector<TierChange> changes;
  };
  struct EvictCommand {
    SequenceId sequence;
    std::shared_ptr<RemoteSession> session;
    std::vector<PageEviction> evictions;
    std::vector<PageName> free;
    std::vector<int32_t> pages;
  };
  struct CloseCommand {
    std::shared_ptr<RemoteSession> session;
  };
  using Command = std::variant<OpenCommand, ReserveCommand, ChangeCommand,
                               EvictCommand, CloseCommand>;

  NodeLink(NodeLinkOptions options, ControlCalls control,
           const Clock& rates_clock);

  void NoteAnswer();
  // On the heartbeat thread; LoseNode on any.
  void HeartbeatMain();
  void SendHeartbeat();
  void LoseNode(const std::string& why);
  // Only rates that are weighed are worth a probe.
  bool Probes() const {
    return options_.tiering.cold == ColdMode::kAuto && !maps();
  }
  // Sent and not answered. A request counts until its callback has run.
  uint64_t OpenRequests() const;
  void Measure(bool quiet, absl::Time sent);
  void ProbeLink();
  void ShowFixedMode();

  // Everything below runs on the link's thread (or in Connect, before it).
  absl::Status ConnectNow();
  // Of the own session's grant; `first`: of this link.
  absl::Status TakeUp(const SessionGrant& grant, bool first);
  absl::Status CheckHandshake(const SessionGrant& grant) const;
  absl::Status ChooseMap(const SessionGrant& grant);
  absl::StatusOr<SessionGrant> OpenOne(RemoteSession& session,
                                       bool continues = false);
  void NoteDraining(bool draining) {
    draining_.store(draining, std::memory_order_release);
  }
  absl::Status Hello(PeerId peer, const SessionGrant& grant);
  absl::StatusOr<PeerId> ConnectData(const SessionGrant& grant);
  void Main();
  bool NextCommand(absl::Duration timeout, Command& command);
  void Run(Command command);
  void Cancel(Command command);
  void RunOpen(const OpenCommand& command);
  // Of `own`; ABORTED when an earlier call had to be repeated in its place.
  absl::Status RunPlan(SequenceId sequence,
                       const std::shared_ptr<RemoteSession>& session,
                       TierPlanCall own);
  void RunEvict(EvictCommand command);
  void ReportReserved(SequenceId sequence, const TierPlanCall& call,
                      const absl::StatusOr<TierPlanResult>& result);
  void ReportMoved(SequenceId sequence,
                   const std::shared_ptr<RemoteSession>& session,
                   const std::vector<TierChange>& asked,
                   const absl::StatusOr<TierPlanResult>& result,
                   bool unanswered);
  absl::StatusOr<TierPlanResult> Apply(RemoteSession& session,
                                       const TierPlanCall& call);
  absl::Status CheckPlaces(std::span<const PageName> asked,
                           std::span<const PagePlacement> placements) const;
  // CANCELLED when the link stops, UNAVAILABLE when the node is lost.
  absl::Status CheckRunning() const;
  absl::Status MapPages(PagesReserved& reserved);
  void RunClose(const CloseCommand& command);
  void CloseAll();
  bool CloseOnNode(RemoteSession& session);
  absl::Time NextLateClose() const;
  void CloseLater(std::shared_ptr<RemoteSession> session);
  void CloseOneLate();
  static bool IsUnanswered(const absl::Status& status);
  void RunTimers();
  // When a plan without an answer is to be repeated next.
  absl::Time NextRepeat() const;
  void RepeatOne();
  void RenewLeases();
  void RenewBatch(std::span<const std::shared_ptr<RemoteSession>> batch);
  void LoseSessions(const absl::Status& why);
  void LoseEndedSessions();
  absl::Duration CallTimeout() const;
  absl::Duration ConnectTimeout() const;
  void SetFence(RemoteSession& session, absl::Time sent,
                absl::Duration lease) const;

  const NodeLinkOptions options_;
  const ControlCalls control_;
  const Clock& clock_ = *options_.clock;
  const Clock& rates_clock_;
  NodeRates rates_;
  std::unique_ptr<Transport> transport_;
  std::string node_id_;  // set by Connect; the same after a reconnection
  std::atomic<bool> maps_{false}, draining_{false};
  std::atomic<uint64_t> sent_{0}, answered_{0};    // see PeerStats
  std::array<std::atomic<uint64_t>, 4> faults_{};  // by NodeFault

  // Link thread only.
  struct OpenedSession {
    SequenceId sequence;
    std::shared_ptr<RemoteSession> session;
  };
  std::vector<OpenedSession> sessions_;
  // Of sequences that have ended, in leases that the node may still count.
  std::vector<std::shared_ptr<RemoteSession>> unclosed_;
  absl::Time next_late_close_;
  bool close_unanswered_ = false;  // the last one
  std::shared_ptr<RemoteSession> own_session_;
  std::unique_ptr<NodeMap> map_;  // of the present epoch
  absl::Duration granted_lease_;
  absl::Time next_renewal_, next_connect_;
  std::string refusal_;  // of the last try to connect again
  absl::Time renewals_sent_ = absl::InfinitePast();  // the last ones
  // When those were sent, or the own session opened, that had the last answer.
  absl::Time renewals_answered_ = absl::InfinitePast();

  mutable absl::Mutex mutex_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool healthy_ ABSL_GUARDED_BY(mutex_) = false;
  bool peer_lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool just_lost_ ABSL_GUARDED_BY(mutex_) = false;  // wakes the link's thread
  bool heartbeats_stop_ ABSL_GUARDED_BY(mutex_) = false;
  PeerId peer_ ABSL_GUARDED_BY(mutex_);
  SessionGrant grant_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_answer_ ABSL_GUARDED_BY(mutex_);
  int open_heartbeats_ ABSL_GUARDED_BY(mutex_) = 0;  // since that
  PeerId last_lost_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_, heartbeat_thread_;  // last: they use all above
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_LINK_H_
