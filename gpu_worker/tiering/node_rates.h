// What one node and the link to it deliver, measured on the fetches and
// pushdowns that happen anyway, and on probes where none do. Thread-safe.
//
// Each figure is the median of its last samples, so that one that met a busy
// processor changes nothing, and three of a new kind change it.
#ifndef FARKV_GPU_WORKER_TIERING_NODE_RATES_H_
#define FARKV_GPU_WORKER_TIERING_NODE_RATES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gpu_worker/tiering/cold_mode.h"

namespace farkv {

// The last five values of something. Thread-compatible.
class RecentValues {
 public:
  void Add(double value) { values_[added_++ % values_.size()] = value; }
  void Clear() { added_ = 0; }
  size_t size() const { return added_ < values_.size() ? added_ : 5; }
  double Last() const { return values_[(added_ - 1) % values_.size()]; }
  double Median() const;  // 0 where there is none

 private:
  std::array<double, 5> values_{};
  size_t added_ = 0;
};

// What a node did in one step: `requests` one after another, which read `rows`
// and took together so long from sending to the answer, of `bytes` with it.
struct AttendSample {
  int requests = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  absl::Duration took;
};

class NodeRates {
 public:
  // Bytes that a probe asks for.
  static constexpr uint32_t kProbeBytes = 256 << 10;

  // Borrowed: outlives it.
  explicit NodeRates(const Clock& clock) : clock_(clock) {}

  // A message without a body was answered while nothing else was under way.
  void NoteRoundTrip(absl::Duration took);
  // Right behind that, `bytes` were asked for and came.
  void NoteProbe(uint64_t bytes, absl::Duration took);
  // Around each fetch, to where its rows have been checked. `bytes`: of rows,
  // as they travelled; 0 for one that failed or was repeated. Fetches that
  // overlap are measured together.
  void FetchBegan();
  void FetchEnded(uint64_t bytes);
  void NoteAttend(const AttendSample& sample);

  // Whether the link should be probed now: nothing has measured it for long,
  // or the last sample says that it has changed. The caller probes; the next
  // answer is "no" for a while.
  bool TakeProbe();

  NodeFigures Figures() const;

  // For those who ask how rows come from the node at present.
  void NoteChoice(const ColdChoice& choice);
  ColdChoice choice() const;

 private:
  void AddLinkSample(uint64_t bytes, absl::Duration took)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration RoundTrip() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable absl::Mutex mutex_;
  RecentValues link_ ABSL_GUARDED_BY(mutex_);         // bytes per second
  RecentValues round_trip_ ABSL_GUARDED_BY(mutex_);   // seconds
  RecentValues attend_ ABSL_GUARDED_BY(mutex_);       // rows per second
  RecentValues attend_trip_ ABSL_GUARDED_BY(mutex_);  // seconds per request
  absl::Time link_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time attend_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time probed_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int probes_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
  // Fetches under way, and what they have brought since `busy_since_`.
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time busy_since_ ABSL_GUARDED_BY(mutex_);
  uint64_t busy_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool busy_from_idle_ ABSL_GUARDED_BY(mutex_) = false;
  bool busy_spoiled_ ABSL_GUARDED_BY(mutex_) = false;
  ColdChoice choice_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TIERING_NODE_RATES_H_
