// What processes say of themselves at one time, for `top`.
#ifndef FARKV_ADMIN_CLI_TOP_SAMPLE_H_
#define FARKV_ADMIN_CLI_TOP_SAMPLE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin_cli/options.h"
#include "admin_cli/peers.h"
#include "farkv/admin/v1/admin.pb.h"

namespace farkv {

struct ProcessSample {
  std::string address;
  bool is_worker = false;  // by the list it was named in
  absl::Status status;     // the rest is there when it is OK
  farkv::admin::v1::GetProcessResponse process;  // with its metrics
  std::vector<farkv::admin::v1::Pool> pools;
  std::vector<farkv::admin::v1::Peer> peers;
};

// Asks all processes at once. Channels are kept, and tried again every second
// where nobody was found. Thread-safe.
class TopSampler {
 public:
  // The error of credentials.
  static absl::StatusOr<std::unique_ptr<TopSampler>> Create(
      const CliOptions& options);
  TopSampler();
  ~TopSampler();

  // One sample of each process, nodes first, in the order they were given in.
  // Takes no longer than `deadline`: who has not answered by then has the
  // status DEADLINE_EXCEEDED. One call at a time.
  std::vector<ProcessSample> Sample(absl::Duration deadline);
  // Ends the running Sample, and every later one, at once.
  void Cancel();

 private:
  struct Target {
    std::string address;
    bool is_worker = false;
    std::unique_ptr<AdminStub> stub;
  };
  struct Calls;
  absl::Status AddTargets(const CliOptions& options,
                          const std::vector<std::string>& addresses,
                          bool workers);

  std::vector<Target> targets_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Calls>> running_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_TOP_SAMPLE_H_
