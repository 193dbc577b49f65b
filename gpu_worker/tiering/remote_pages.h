// The nodes' side of one sequence: its sessions, and where its pages are
// reserved. Plain state, owned by the engine thread.
#ifndef FARKV_GPU_WORKER_TIERING_REMOTE_PAGES_H_
#define FARKV_GPU_WORKER_TIERING_REMOTE_PAGES_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "gpu_worker/tiering/node_map.h"
#include "gpu_worker/tiering/tier_events.h"

namespace farkv {

// Where one layer of a page lies on its node.
struct PagePlace {
  Generation generation;
  Tier tier = Tier::kT1;
  int t2_bits = 0;
  // The page in the worker's read-only mapping, if it is mapped.
  MappedPage map;
  // The mapped header and rows were checked under this generation.
  bool verified = false;
};

struct RemotePage {
  int node = -1;  // index of the node that has the reservation; -1: none
  std::vector<PagePlace> places;  // [layer] once reserved
  // A failed store is tried again from then on, less and less often.
  absl::Time retry_at = absl::InfinitePast();
  int failures = 0;
  bool moving = false;  // to another tier of its node, not answered yet

  bool is_t2() const {
    return !places.empty() && places.front().tier == Tier::kT2;
  }
};

struct RemoteState {
  struct OnNode {
    bool opening = false;
    std::shared_ptr<RemoteSession> session;  // null: not open
    absl::Time retry_at = absl::InfinitePast();
    // As of the last look: the node is not lost and the lease holds, so rows
    // that it has need no second copy in T0.
    bool answers = false;
    bool evicting = false;    // one call about destroyed rows at a time
    int64_t told_tokens = 0;  // the sequence's tokens at the last one
    absl::Time evict_retry_at = absl::InfinitePast();
  };
  std::vector<int> order;         // nodes by preference (stripes.h)
  int num_trusted = 0;            // those at its front that are not distrusted
  std::set<int> distrusted;       // healthy, and yet gave no good rows
  bool continues = false;         // after a Restart: draining nodes take it
  std::vector<OnNode> nodes;      // by node index
  std::vector<RemotePage> pages;  // every page that may ever be full

  bool reserving = false;  // one reservation at a time
  absl::Time reserve_retry_at = absl::InfinitePast();
  // Counts refusals for want of room: who refused is passed over.
  int first_choice = 0;
  // The next try after a node had no room for a T2 page.
  absl::Time compress_retry_at = absl::InfinitePast();
  // Hints: every page below is reserved, or stored.
  int first_unreserved = 0;
  int first_unstored = 0;

  // Of a page that has a place.
  bool Answers(int page_index) const {
    const int node = pages[static_cast<size_t>(page_index)].node;
    return nodes[static_cast<size_t>(node)].answers;
  }
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_REMOTE_PAGES_H_
