// The loop that drives UCX: one thread, one worker. Submissions reach it
// through the operation table; Listen and Connect as calls that it runs
// between two rounds. Thread-safe.
#ifndef FARKV_COMMON_TRANSPORT_UCX_PROGRESS_ENGINE_H_
#define FARKV_COMMON_TRANSPORT_UCX_PROGRESS_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/transport/operation_table.h"
#include "common/transport/ucx/endpoints.h"
#include "common/transport/ucx/engine_thread.h"
#include "common/transport/ucx/message_receiver.h"
#include "common/transport/ucx/message_sender.h"
#include "common/transport/ucx/receive_buffers.h"
#include "common/transport/ucx/socket_address.h"
#include "common/transport/ucx/ucx_worker.h"

namespace farkv {

class ProgressEngine {
 public:
  // The part of TransportOptions that concerns the loop.
  struct Options {
    Options(const Clock* the_clock, int operations, absl::Duration spin_for)
        : clock(the_clock), max_operations(operations), spin(spin_for) {}
    const Clock* clock;
    int max_operations;
    absl::Duration spin;
  };

  // Starts the thread and UCX in it.
  static absl::StatusOr<std::unique_ptr<ProgressEngine>> Start(
      std::shared_ptr<OperationTable> table, const Options& options,
      std::shared_ptr<ReceiveBuffers> buffers, const UcxOptions& ucx,
      bool loopback_only);
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  absl::StatusOr<uint16_t> Listen(const SocketAddress& address);
  absl::StatusOr<PeerId> Connect(const SocketAddress& address,
                                 const std::string& name);
  // There is something in the table. Cheap when the loop is awake.
  void Wake();
  // Closes what is open by force, destroys UCX, joins. Every peer of the table
  // must have been failed before. Idempotent; also run by the destructor.
  void Stop();

 private:
  ProgressEngine(std::shared_ptr<OperationTable> table, const Options& options,
                 std::shared_ptr<ReceiveBuffers> buffers);
  void ThreadMain(const UcxOptions& ucx, bool loopback_only);
  absl::Status Create(const UcxOptions& ucx, bool loopback_only)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  void Loop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  bool ProgressUpToBudget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  void SleepUntilNextDeadline() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  void Destroy() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);

  // Runs `call` on the engine's thread and waits for it; UNAVAILABLE once the
  // engine has stopped.
  absl::Status Run(std::function<void()> call);
  bool RunCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(engine_thread);
  bool HasCalls();

  const std::shared_ptr<OperationTable> table_;
  const Options options_;
  const std::shared_ptr<ReceiveBuffers> buffers_;

  // The engine's thread only, from Create to Destroy.
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<Endpoints> endpoints_;
  std::unique_ptr<MessageSender> sender_;
  std::unique_ptr<MessageReceiver> receiver_;

  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};

  // Held over ucp_worker_signal, so that the worker cannot go under it.
  absl::Mutex signal_mutex_;
  UcxWorker* signalled_ ABSL_GUARDED_BY(signal_mutex_) = nullptr;

  absl::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status start_status_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // no call is run any more
  std::vector<std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace farkv

#endif  // FARKV_COMMON_TRANSPORT_UCX_PROGRESS_ENGINE_H_
