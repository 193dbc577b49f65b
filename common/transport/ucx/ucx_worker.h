// One UCX context with one worker, owned by one engine. Not thread-safe but for
// Signal(): the engine's thread alone uses it. Active messages and wakeup are
// its only features: with UCP_FEATURE_RMA a peer could make this process read
// and write raw addresses (docs/DECISIONS).
#ifndef FARKV_COMMON_TRANSPORT_UCX_UCX_WORKER_H_
#define FARKV_COMMON_TRANSPORT_UCX_UCX_WORKER_H_

#include <ucp/api/ucp.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/transport/ucx/engine_thread.h"
#include "common/transport/ucx/ucx_transport.h"

namespace farkv {

class UcxWorker {
 public:
  // `loopback_only`: what an empty net_devices stands for.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(
      const UcxOptions& options, bool loopback_only)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h get() const { return worker_; }

  // Whether anything moved.
  bool Progress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Sleeps until there is an event, a signal, or `timeout` has passed.
  void Sleep(absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  // Wakes a sleeper. The one call that any thread may make.
  void Signal();

 private:
  UcxWorker() = default;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;  // UCX's; closed with the worker
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_UCX_WORKER_H_
