// A real farkv-worker process with clients for its services.
#ifndef FARKV_TESTS_INTEGRATION_WORKER_PROCESS_H_
#define FARKV_TESTS_INTEGRATION_WORKER_PROCESS_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/node_cluster.h"
#include "common/process/child_process.h"
#include "farkv/admin/v1/admin_service.grpc.pb.h"
#include "farkv/worker/v1/generation_service.grpc.pb.h"
#include "tests/integration/settled.h"

namespace farkv::testing {

// Folders of the build and of the source tree, from the test's environment.
std::string BinDir();
std::string SourceDir();
std::string ReasonerDir();

// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Everything of one Generate stream.
struct Generated {
  std::string text;
  std::vector<int32_t> tokens;
  std::optional<farkv::worker::v1::Finished> finished;
  std::optional<farkv::worker::v1::GenerateError> error;
  grpc::Status status;
};

class WorkerProcess {
 public:
  // Every listener on port 0. Without --device the one that FARKV_TEST_DEVICE
  // names, if it is set. With a device it is a fault worker: others do not know
  // the fake one. The error carries the end of the log.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(
      std::vector<std::string> flags, bool faults = false);

  // `timeout` ends what hangs; test machines are busy.
  Generated Generate(const farkv::worker::v1::GenerateRequest& request,
                     absl::Duration timeout = absl::Minutes(3));

  farkv::worker::v1::GenerationService::Stub& generation() {
    return *generation_;
  }
  farkv::admin::v1::AdminService::Stub& admin() { return *admin_; }
  ChildProcess& process() { return *process_; }
  uint16_t port() const { return port_; }
  uint16_t metrics_port() const { return metrics_port_; }
  uint16_t admin_port() const { return admin_port_; }
  std::string Log() const;

 private:
  WorkerProcess() = default;

  TemporaryFolder folder_;
  std::optional<ChildProcess> process_;
  uint16_t port_ = 0, metrics_port_ = 0, admin_port_ = 0;
  std::unique_ptr<farkv::worker::v1::GenerationService::Stub> generation_;
  std::unique_ptr<farkv::admin::v1::AdminService::Stub> admin_;
};

// The first unseen program that comes with the reasoner.
struct HeldOutProgram {
  std::string prompt, completion;
};
HeldOutProgram FirstHeldOutProgram();

// A request for `text` with `max_new_tokens`, otherwise by default.
farkv::worker::v1::GenerateRequest TextRequest(const std::string& text,
                                               int32_t max_new_tokens);
// A random prompt and a forced continuation of the reasoner's vocabulary.
farkv::worker::v1::GenerateRequest ForcedRequest(uint64_t seed,
                                                 int32_t prompt_tokens,
                                                 int32_t forced_tokens);

// A client of the admin service at 127.0.0.1:`port`.
std::unique_ptr<farkv::admin::v1::AdminService::Stub> AdminAt(uint16_t port);
void SetDeadline(grpc::ClientContext& context, absl::Duration timeout);

// Flags of a fault worker whose nodes take a second for each answer: a request
// for thousands of tokens stays at work for many minutes, however fast the
// machine is, once T0 is full.
std::vector<std::string> SlowWorkerFlags();

// Runs a program to its end and returns exit code and output.
struct ProgramResult {
  int exit_code = -1;
  std::string output;
};
ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         absl::Duration timeout = absl::Seconds(60));

// Whether a worker may have lost rows: only where a test makes it. A request
// that recomputes them has the right tokens all the same.
enum class Recoveries { kNone, kAllowed };

// Waits until the worker is quiet, ends it, and checks that it has given back
// everything, that each request to its `num_nodes` nodes was answered exactly
// once, and that it recomputed nothing unless that is allowed.
void ExpectCleanEnd(WorkerProcess& worker, size_t num_nodes,
                    Recoveries recoveries = Recoveries::kNone);
// The same of nodes whose workers have ended, and ends them; each has `timeout`
// to be quiet.
void ExpectCleanEnd(bench::NodeCluster& cluster,
                    absl::Duration timeout = absl::Seconds(30));
// The same of those that a test has not killed (by SIGKILL or a second
// SIGTERM). A session that could not be closed ends with its lease, and its
// pages stay in quarantine for as long again; `timeout` suffices for leases of
// 30 s. `worker` may be null.
void ExpectSurvivorsEndClean(WorkerProcess* worker, bench::NodeCluster& cluster,
                             Recoveries recoveries,
                             absl::Duration timeout = absl::Seconds(90));

}  // namespace farkv::testing

#endif  // FARKV_TESTS_INTEGRATION_WORKER_PROCESS_H_
