// The sessions of a memory node and everything they own. DESIGN 6 and 7.
//
// Goals: a page belongs to one session under one lease; nothing is read or
// written for a session whose lease is over, whose epoch is another life's or
// whose generation is older; a mutating call takes effect once, however often
// it is sent; when a lease ends, the pages go to quarantine for one more
// lease. Non-goals: copying rows (data/), choosing what to store.
//
// Errors carry an ErrorReason (common/rpc/error_reason.h) and name session and
// the values compared. Leases are counted on the injected clock; a lease is
// over as soon as its end is reached, whether or not a sweep has run.
//
// Thread-safe. Slow work (new slabs) runs without the lock. Tickets and pins
// must not outlive the directory's pool.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_DIRECTORY_H_
#define FARKV_MEMORY_NODE_DIRECTORY_DIRECTORY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/session_handle.h"
#include "common/rpc/memory_types.h"
#include "memory_node/directory/data_access.h"
#include "memory_node/directory/session.h"
#include "memory_node/directory/session_report.h"
#include "memory_node/directory/t2_tier.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

struct DirectoryOptions {
  Epoch epoch{1};
  Handshake handshake;  // of this node
  absl::Duration max_lease = absl::Seconds(30);
  size_t max_sessions = 65536;
  // Hint sent with RESOURCE_EXHAUSTED.
  absl::Duration retry_after = absl::Milliseconds(500);
};

class Directory {
 public:
  // `pool` (of T1), `clock` and the T2 pool outlive the directory.
  Directory(const DirectoryOptions& options, PagePool& pool, const Clock& clock,
            T2Tier t2 = {});
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // Control plane (directory.cc, directory_plan.cc, directory_compress.cc).

  // Fills what the directory knows of the grant; the service adds addresses.
  // A running session of the same id, tenant and geometry is returned as
  // resumed, with a renewed lease, a new token and its last plan's number.
  absl::StatusOr<SessionGrant> Open(const OpenSessionCall& call);
  // FAILED_PRECONDITION for another epoch; else one result per session.
  absl::StatusOr<RenewResult> Renew(Epoch epoch,
                                    std::span<const SessionId> sessions,
                                    absl::Duration lease);
  // Reservations are all or none and come first: when they fail, nothing of
  // the plan was done. A page that is reserved already keeps its place. A tier
  // change that fails leaves its page as it was (common/rpc/memory_types.h).
  // ABORTED at once, and nothing was done, while another plan of the session
  // runs: call again.
  absl::StatusOr<TierPlanResult> Apply(const TierPlanCall& call);
  // Pages freed; 0 for an unknown session: closed is closed.
  absl::StatusOr<uint64_t> Close(const SessionId& session, Epoch epoch);

  // Data plane (directory_data.cc).

  // Uses up a token of the data plane and returns who got it: a peer that
  // shows it may touch that tenant's sessions. PERMISSION_DENIED for an unknown
  // or used one.
  absl::StatusOr<TokenOwner> RedeemToken(const std::string& token);
  // Who got `token` when it is the last one of `session`, used or not: the map
  // socket asks once per slab, and its session maps from then on.
  // PERMISSION_DENIED otherwise.
  absl::StatusOr<TokenOwner> CheckToken(const SessionId& session,
                                        const std::string& token);
  // OK when `caller` may use its session now.
  absl::StatusOr<CalledSession> CheckCaller(const DataCaller& caller) const;
  // The caller copies into the ticket's page and then calls FinishStore, also
  // when the copy failed. ABORTED while another store of the page runs.
  absl::StatusOr<StoreTicket> BeginStore(const DataCaller& caller,
                                         const PageName& page,
                                         Generation generation);
  // `rows` are the rows stored, [KV head] bitmaps; empty: the copy failed and
  // the page stays as it was. FAILED_PRECONDITION when the session or the page
  // has gone meanwhile.
  absl::Status FinishStore(StoreTicket ticket, std::span<const uint64_t> rows);
  // One result per item, in order; the error of `caller` in all of them. The
  // T1 page that a T2 page was made from can be had under its own generation
  // until its quarantine is over. FAILED_PRECONDITION naming both for another
  // generation, tier or number of bits.
  std::vector<absl::StatusOr<PagePin>> BeginFetch(
      const DataCaller& caller, int32_t layer,
      std::span<const PageWanted> wanted);

  // Decisions (directory_read.cc).

  // Pins the pages of `wanted`, which ascends by page, as they are now.
  // INVALID_ARGUMENT for a layer or head that the session does not have,
  // NOT_FOUND naming head and position for a row that is not stored; of the
  // session: its errors, as for plans. Nothing is pinned then.
  absl::StatusOr<ReadTicket> BeginRead(const SessionId& session, Epoch epoch,
                                       std::span<const RowsWanted> wanted);
  // OK when the session still runs and all pages are still those of the
  // ticket. ABORTED naming one that moved or was freed while it was read.
  absl::Status CheckRead(const ReadTicket& ticket) const;

  // Leases and drain (directory.cc).

  // Ends the leases that are over. Returns the next end and the sessions that
  // were lost since the last sweep.
  struct SweepResult {
    absl::Time next = absl::InfiniteFuture();
    std::vector<RevokedSession> revoked;
  };
  SweepResult Sweep();
  // While draining no session is opened and no page reserved.
  void SetDraining(bool draining);
  bool draining() const;
  // False when sessions are left after `timeout` of real time.
  bool WaitUntilEmpty(absl::Duration timeout) const;
  Epoch epoch() const { return options_.epoch; }
  const Handshake& handshake() const { return options_.handshake; }

  // Reports (directory_report.cc).

  DirectoryStats stats() const;
  struct Summary {
    size_t sessions = 0;
    bool draining = false;
  };
  Summary summary() const;
  // Of the sessions that there are (CalledSession).
  absl::flat_hash_set<uint64_t> Instances() const;
  // The one session that `pattern` names. NOT_FOUND or FAILED_PRECONDITION
  // when there is none; FAILED_PRECONDITION when a handle fits several.
  absl::StatusOr<SessionId> Resolve(const SessionPattern& pattern) const;
  // `count` sessions with ids above `after`, ascending, as far as there are,
  // and those that share the last one's handle.
  std::vector<SessionReport> List(const SessionId& after, size_t count) const;
  absl::StatusOr<SessionReport> Describe(const SessionId& session) const;
  // Pages of a session, ascending by page index, then layer.
  absl::StatusOr<std::vector<PageReport>> DescribePages(
      const SessionId& session) const;
  // Pages that are not free, `query.count` at most: those of sessions, in the
  // order in which these were opened, each by generation; then those in
  // quarantine, by generation. Looks at every page of the sessions and of the
  // quarantine that it reaches, under the lock.
  std::vector<HeldPage> ListPages(const PageQuery& query) const;
  // A stored page and what its header must say, for the scrubber.
  absl::StatusOr<StoredPage> PinStored(const SessionId& session,
                                       const PageName& page);

 private:
  Session* Find(const SessionId& id) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckEpoch(Epoch epoch) const;
  absl::Status Unknown(const SessionId& id) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Session*> FindForData(const DataCaller& caller) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool Expired(const Session& session) const;
  absl::StatusOr<Session*> FindRunning(const SessionId& id, Epoch epoch) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status PinForRead(const Session& session,
                          std::span<const RowsWanted> wanted,
                          ReadTicket& ticket) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckPagesRead(const ReadTicket& ticket,
                              std::span<const PageRead> pages) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PagePin> PinWanted(const PageName& page,
                                    const PageEntry& entry,
                                    const PageWanted& wanted) const;

  // Those that `query` may reach, in the order in which they were opened.
  std::vector<const Session*> SessionsOf(const PageQuery& query) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddPages(const Session& session, const PageQuery& query,
                std::vector<HeldPage>& pages) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void AddQuarantined(const PageQuery& query,
                      std::vector<HeldPage>& pages) const;

  SessionGrant Grant(Session& session, absl::Duration lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the lease given. The end of a lease never moves backwards.
  absl::Duration SetLease(Session& session, absl::Duration lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireSessions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A page on its way from T1 to T2.
  struct Compression {
    size_t index = 0;  // of the tier change
    PagePin from;
    absl::StatusOr<PageHandle> to;  // made without the lock
  };
  // Parts of Apply: BeginPlan, unlocked work on new pages, FinishPlan.
  struct PlanWork {
    uint64_t instance = 0;  // of the session
    std::string tenant;
    size_t stride = 0;
    KvGeometry geometry;
    std::vector<PageName> missing;     // to reserve
    std::vector<PagePlacement> moved;  // as far as known
    std::vector<Compression> compressions;
    const TierPlanResult* kept = nullptr;  // the reply of an earlier try
  };
  static absl::Status CheckNoPlanRuns(const Session& session);
  absl::StatusOr<PlanWork> BeginPlan(const TierPlanCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<PageHandle>> MakePages(const SessionId& session,
                                                    const PlanWork& work) const;
  absl::StatusOr<TierPlanResult> FinishPlan(
      const TierPlanCall& call, PlanWork& work,
      const absl::StatusOr<std::vector<PageHandle>>& pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TierPlanResult ApplyLocked(Session& session, const TierPlanCall& call,
                             std::vector<PagePlacement> moved)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The page to compress, or that is T2 as asked already.
  absl::StatusOr<PageEntry*> FindToCompress(Session& session,
                                            const TierChange& change) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginCompressions(Session& session, const TierPlanCall& call,
                         PlanWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunCompressions(const TierPlanCall& call, PlanWork& work) const;
  absl::StatusOr<PageHandle> Compress(const SessionId& session,
                                      const TierChange& change,
                                      const PlanWork& work,
                                      std::byte* from) const;
  void FinishCompressions(Session& session, const TierPlanCall& call,
                          PlanWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nobody has heard of the pages that the plan made.
  void DropPages(const PlanWork& work,
                 const absl::StatusOr<std::vector<PageHandle>>& pages) const;
  absl::Status Evict(Session& session, const PageEviction& eviction,
                     uint64_t& freed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Free(Session& session, const PageName& page)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PagePool& PoolOf(const PageEntry& entry) const {
    return entry.tier == Tier::kT2 ? *t2_.pool : pool_;
  }
  // Gives its memory back at once: the owner says that nobody reads it.
  void ReleaseMemory(const PageEntry& entry) const;
  // Adds the live rows of a stored page to the session's, or takes them off.
  static void CountLiveRows(Session& session, const PageEntry& entry, bool add);

  const DirectoryOptions options_;
  PagePool& pool_;
  const T2Tier t2_;
  const Clock& clock_;

  mutable absl::Mutex mutex_;
  absl::btree_map<SessionId, std::unique_ptr<Session>> sessions_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, SessionId>> lease_ends_
      ABSL_GUARDED_BY(mutex_);
  struct Token {
    TokenOwner owner;
    bool used = false;
  };
  absl::flat_hash_map<std::string, Token> tokens_ ABSL_GUARDED_BY(mutex_);
  // The last sessions whose lease ran out, for clearer errors.
  std::deque<SessionId> expired_ ABSL_GUARDED_BY(mutex_);
  std::vector<RevokedSession> unreported_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_instance_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t expired_total_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t compressed_total_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_DIRECTORY_H_
