// Ends leases and quarantines on time: one thread that sleeps until the next
// end. Poke() it when an end may have come nearer (a new session, a new peer).
// An idle node wakes for nothing. Thread-safe.
#ifndef FARKV_MEMORY_NODE_DIRECTORY_LEASE_SWEEPER_H_
#define FARKV_MEMORY_NODE_DIRECTORY_LEASE_SWEEPER_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "memory_node/directory/directory.h"

namespace farkv {

class LeaseSweeper {
 public:
  // Called on the sweeper's thread, no lock held, after each sweep. Returns
  // when it wants the next one; a lease may end earlier.
  using SweptHandler =
      std::function<absl::Time(const std::vector<RevokedSession>&)>;

  // `directory` and `clock` outlive the sweeper.
  LeaseSweeper(Directory& directory, const Clock& clock, SweptHandler on_swept);
  ~LeaseSweeper();
  LeaseSweeper(const LeaseSweeper&) = delete;
  LeaseSweeper& operator=(const LeaseSweeper&) = delete;

  void Poke();

 private:
  void Run();

  Directory& directory_;
  const Clock& clock_;
  const SweptHandler on_swept_;
  absl::Mutex mutex_;
  bool poked_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DIRECTORY_LEASE_SWEEPER_H_
