// A small memory node inside the test: the frozen messages over a loopback
// network, the control plane as function calls, pages in the real format.
// Switches make it refuse, lose and damage things. Thread-safe.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_TIERING_TEST_NODE_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_TIERING_TEST_NODE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/async/thread_executor.h"
#include "common/layout/kv_geometry.h"
#include "common/mapping/map_socket.h"
#include "common/mapping/memfd_slab.h"
#include "common/page/bodies.h"
#include "common/transport/loopback_transport.h"
#include "gpu_worker/tiering/node_access.h"

namespace farkv {

class TestNode {
 public:
  // A node of `num_pages` pages. `map_dir`: where its map socket goes; empty:
  // it offers no map.
  TestNode(LoopbackNetwork& network, const KvGeometry& geometry, std::string id,
           int num_pages = 4096, std::string map_dir = "");
  ~TestNode();

  const std::string& id() const { return id_; }
  uint16_t port() const { return port_; }
  ControlCalls Control();

  // The next `count` stores, or reservations, are refused.
  void RefuseStores(int count);
  void RefuseReservations(int count);
  // While it drains it refuses new sessions, but for requests that go on.
  void SetDraining(bool draining);
  // The next `count` fetch replies have one flipped bit in their rows, with
  // the message's CRC over the flipped bytes.
  void DamageFetches(int count);
  // Every fetch reply goes through `edit` before it is sent, items and rows;
  // null: none does.
  using FetchEdit =
      std::function<void(FetchReply& reply, std::vector<std::byte>& rows)>;
  void EditFetches(FetchEdit edit);
  // While set every fetch is refused, as by a node that is overloaded.
  void RefuseFetches(bool refuse) { refuse_fetches_ = refuse; }
  // While down it refuses every control call; going down closes all its
  // connections. Who is connected notices without having to wait.
  void SetDown(bool down);
  // Forgets every session and its pages and closes its connections; from now
  // on under a new epoch.
  void Restart();
  // Gives a page's memory away: raises its generation.
  void GiveAway(int32_t layer, int32_t page_index);
  // Flips one bit of a stored row.
  void DamageRow(int32_t layer, int32_t page_index, int head, int slot);

  int sessions() const;
  bool has_sessions() const;  // the own ones of links included
  int used_pages() const;
  int stored_pages() const;
  int fetched_pages() const;

 private:
  struct Entry {
    int page = -1;
    bool stored = false;
  };
  struct Session {
    std::map<PageName, Entry> pages;
  };

  std::byte* PageData(int page) const {
    return memory_.base() + static_cast<size_t>(page) * stride_;
  }
  absl::StatusOr<SessionGrant> Open(const OpenSessionCall& call);
  absl::StatusOr<TierPlanResult> Apply(const TierPlanCall& call);
  absl::StatusOr<uint64_t> Close(SessionId session);
  absl::Status CheckUp() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseConnections();
  void Free(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRequest(Incoming incoming);
  absl::StatusCode StoreOne(SessionId session, const KvGeometry& geometry,
                            int32_t layer, int32_t page_index,
                            Generation generation, const std::byte* rows,
                            const std::vector<uint32_t>& crcs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::byte> Store(const Message& message);
  std::vector<std::byte> Fetch(const Message& message);

  const KvGeometry geometry_;
  const std::string id_;
  const size_t stride_;
  MemfdSlab memory_;
  uint16_t port_ = 0;

  std::atomic<bool> refuse_fetches_ = false;
  mutable absl::Mutex mutex_;
  Epoch epoch_ ABSL_GUARDED_BY(mutex_){1};
  std::vector<int> free_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> generations_ ABSL_GUARDED_BY(mutex_);
  std::map<SessionId, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  int refuse_stores_ ABSL_GUARDED_BY(mutex_) = 0;
  int refuse_reservations_ ABSL_GUARDED_BY(mutex_) = 0;
  int damage_fetches_ ABSL_GUARDED_BY(mutex_) = 0;
  bool down_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<PeerId> peers_ ABSL_GUARDED_BY(mutex_);  // that ever asked
  FetchEdit edit_fetches_ ABSL_GUARDED_BY(mutex_);
  int fetched_pages_ ABSL_GUARDED_BY(mutex_) = 0;

  ThreadExecutor executor_{1};
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MapServer> map_server_;
};

// Nodes by address "0", "1", ... over `network`.
NodeAccess AccessTo(LoopbackNetwork& network, std::vector<TestNode*> nodes);

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_TIERING_TEST_NODE_H_
