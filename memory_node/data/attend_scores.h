// Attention mass of leaves that this node computed for workers (pushdown).
// DESIGN 5.3; ALGORITHMS 12.2.
//
// A weight of a leaf counts only once the row's global m and l are known, and
// only the worker can know them: the next attend request of the same layer, or
// the closing scores request, brings those of the step before. So the weights
// of one step are kept per (session, layer), applied at most once, and
// replaced by those of the next. Sums are fixed point, so their order does not
// matter: bit for bit what the worker would have added itself.
//
// A session is named by its instance (CalledSession): a session that was closed
// and opened again under its id starts without scores.
//
// Bounded: `max_bytes` of kept weights, beyond which a step's weights are not
// kept (its mass is lost, counted); sums are bounded by the pages of sessions.
// Thread-safe.
#ifndef FARKV_MEMORY_NODE_DATA_ATTEND_SCORES_H_
#define FARKV_MEMORY_NODE_DATA_ATTEND_SCORES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/layout/kv_geometry.h"
#include "common/page/bodies.h"

namespace farkv {

// The weights of one step and layer.
struct KeptLeaves {
  uint64_t step = 0;
  std::vector<int32_t> pages;
  std::vector<float> weights;  // [page][query head][64], exp(logit - m)
  std::vector<float> m;        // [page][query head]

  size_t bytes() const {
    return (weights.size() + m.size()) * sizeof(float) +
           pages.size() * sizeof(int32_t);
  }
};

class AttendScores {
 public:
  explicit AttendScores(size_t max_bytes = size_t{1} << 30)
      : max_bytes_(max_bytes) {}
  AttendScores(const AttendScores&) = delete;
  AttendScores& operator=(const AttendScores&) = delete;

  // Adds what is kept of (session, layer) if it is of the step of `globals`,
  // and keeps it no longer. `geometry` is the session's. INVALID_ARGUMENT for
  // globals that no attention can have; nothing is added then.
  absl::Status Apply(uint64_t session, int32_t layer,
                     const KvGeometry& geometry, const AttendGlobals& globals);
  // False when there is no room: none of `leaves` is kept then. Those of the
  // step that is there join it, pages that it has already excepted: a sequence
  // may come in several requests, and a request twice. Leaves of an older step,
  // or of one that was added already (a late repetition), are dropped.
  bool Keep(uint64_t session, int32_t layer, KeptLeaves leaves);
  // Applies the request's globals; returns the sums of its pages since the
  // collection before. The last collection again gets the same answer; an
  // older one FAILED_PRECONDITION.
  absl::StatusOr<std::vector<PageScores>> Collect(uint64_t session,
                                                  const KvGeometry& geometry,
                                                  const ScoresRequest& request);
  // Forgets the sessions that are not in `open`, which is called after those
  // here were listed: one that is opened meanwhile is kept.
  void ForgetClosed(absl::FunctionRef<absl::flat_hash_set<uint64_t>()> open);

  size_t kept_bytes() const { return kept_bytes_; }
  size_t num_sessions() const;

 private:
  struct SessionScores {
    absl::Mutex mutex;
    // Found before its session was closed, and not to be filled any more.
    bool forgotten ABSL_GUARDED_BY(mutex) = false;
    absl::flat_hash_map<int32_t, KeptLeaves> kept
        ABSL_GUARDED_BY(mutex);  // by layer
    absl::flat_hash_map<int32_t, uint64_t> applied
        ABSL_GUARDED_BY(mutex);  // by layer, the last step that was added
    absl::flat_hash_map<int32_t, PageScores> sums
        ABSL_GUARDED_BY(mutex);  // by page
    uint64_t collection ABSL_GUARDED_BY(mutex) = 0;
    std::vector<PageScores> answer ABSL_GUARDED_BY(mutex);  // to `collection`
  };

  std::shared_ptr<SessionScores> FindOrAdd(uint64_t session);
  absl::Status ApplyLocked(SessionScores& scores, int32_t layer,
                           const KvGeometry& geometry,
                           const AttendGlobals& globals)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(scores.mutex);

  const size_t max_bytes_;
  std::atomic<size_t> kept_bytes_{0};
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<SessionScores>> sessions_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_ATTEND_SCORES_H_
