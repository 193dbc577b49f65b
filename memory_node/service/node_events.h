// Tells streams what changes in a node: pressure, drain, sessions that ended.
//
// Subscribers are called one state after the other, never an older one after a
// newer one, on a thread that subscribed or published, no lock held. One may
// still be called shortly after it has unsubscribed, so it must keep what it
// touches alive. Thread-safe.
#ifndef FARKV_MEMORY_NODE_SERVICE_NODE_EVENTS_H_
#define FARKV_MEMORY_NODE_SERVICE_NODE_EVENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "memory_node/directory/directory.h"
#include "memory_node/pool/page_pool.h"

namespace farkv {

// What streams report; compared to find changes.
struct NodeState {
  bool pressure = false;
  bool draining = false;
  size_t sessions = 0;

  friend bool operator==(const NodeState&, const NodeState&) = default;
};

class NodeEvents {
 public:
  using Subscriber = std::function<void(
      const NodeState&, const std::vector<RevokedSession>& revoked)>;

  // Both outlive the hub.
  NodeEvents(const Directory& directory, const PagePool& pool);

  // The first call tells the state as it is: now, or by the thread that is
  // publishing.
  uint64_t Subscribe(Subscriber subscriber);
  void Unsubscribe(uint64_t id);

  NodeState state() const;
  // Call after anything that may have changed the state; publishes when it
  // has, or when sessions were revoked. While another thread publishes, that
  // one goes on with the newest state.
  void Refresh(const std::vector<RevokedSession>& revoked = {});

 private:
  // One round of calls.
  struct Round {
    NodeState state;
    std::vector<RevokedSession> revoked;
    std::vector<std::shared_ptr<const Subscriber>> subscribers;
  };
  // False when there is nothing to tell or another thread is at it.
  bool BeginRound(Round& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);

  const Directory& directory_;
  const PagePool& pool_;
  absl::Mutex mutex_;
  NodeState last_ ABSL_GUARDED_BY(mutex_);  // as told to all
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool publishing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<RevokedSession> revoked_ ABSL_GUARDED_BY(mutex_);  // to be told
  std::vector<std::shared_ptr<const Subscriber>> new_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const Subscriber>> subscribers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_NODE_EVENTS_H_
