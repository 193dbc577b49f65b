// AdminService of a memory node. Calls that concern workers answer
// FAILED_PRECONDITION naming the kind of process. Thread-safe.
#ifndef FARKV_MEMORY_NODE_SERVICE_ADMIN_SERVICE_H_
#define FARKV_MEMORY_NODE_SERVICE_ADMIN_SERVICE_H_

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/async/executor.h"
#include "common/base/clock.h"
#include "farkv/admin/v1/admin_service.grpc.pb.h"
#include "memory_node/data/data_plane.h"
#include "memory_node/data/decide_handler.h"
#include "memory_node/data/eviction_log.h"
#include "memory_node/data/scrubber.h"
#include "memory_node/directory/directory.h"
#include "memory_node/pool/page_pool.h"
#include "memory_node/service/node_events.h"

namespace farkv {

// What GetProcess and ListPeers say of the process.
struct NodeIdentity {
  std::string node_id;
  std::string transport;  // of the data plane: "tcp", "rdma"
  int numa_node = -1;
  std::map<std::string, std::string> config;
};

class AdminService final
    : public farkv::admin::v1::AdminService::CallbackService {
 public:
  // How many calls may wait for their turn on the executor; RESOURCE_EXHAUSTED
  // beyond.
  static constexpr int kMaxWaiting = 16;
  // Borrowed, outlive the service. Verify runs on `executor`, one at a time;
  // so does `replay`, which computes a decision of the log again
  // (memory_node/data/decide_handler.h).
  struct Parts {
    Directory* directory = nullptr;
    PagePool* pool = nullptr;     // T1
    PagePool* t2_pool = nullptr;  // may be absent
    DataPlane* data = nullptr;
    NodeEvents* events = nullptr;
    Scrubber* scrubber = nullptr;
    const EvictionLog* evictions = nullptr;
    Executor* executor = nullptr;
    const Clock* clock = nullptr;
    std::function<absl::StatusOr<Replay>(uint64_t decision_id)> replay = {};
    // As of now; by name.
    std::function<std::map<std::string, double>()> metrics = {};
  };
  // In the .cc, as the destructor is: what they instantiate of gRPC takes ten
  // seconds to compile, wherever it is.
  AdminService(Parts parts, NodeIdentity identity);
  ~AdminService() override;

  grpc::ServerUnaryReactor* GetProcess(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::GetProcessRequest* request,
      farkv::admin::v1::GetProcessResponse* response) override;
  grpc::ServerUnaryReactor* ListPools(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ListPoolsRequest* request,
      farkv::admin::v1::ListPoolsResponse* response) override;
  grpc::ServerUnaryReactor* ListSessions(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ListSessionsRequest* request,
      farkv::admin::v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* ListPages(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ListPagesRequest* request,
      farkv::admin::v1::ListPagesResponse* response) override;
  grpc::ServerUnaryReactor* ListSequences(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ListSequencesRequest* request,
      farkv::admin::v1::ListSequencesResponse* response) override;
  grpc::ServerUnaryReactor* GetTierMap(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::GetTierMapRequest* request,
      farkv::admin::v1::GetTierMapResponse* response) override;
  grpc::ServerUnaryReactor* ListEvictions(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ListEvictionsRequest* request,
      farkv::admin::v1::ListEvictionsResponse* response) override;
  grpc::ServerUnaryReactor* ReplayEviction(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ReplayEvictionRequest* request,
      farkv::admin::v1::ReplayEvictionResponse* response) override;
  grpc::ServerUnaryReactor* ListPeers(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::ListPeersRequest* request,
      farkv::admin::v1::ListPeersResponse* response) override;
  grpc::ServerWriteReactor<farkv::admin::v1::DrainResponse>* Drain(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::DrainRequest* request) override;
  grpc::ServerUnaryReactor* Verify(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::VerifyRequest* request,
      farkv::admin::v1::VerifyResponse* response) override;

 private:
  // Runs `work` on the executor, unless its caller has gone by then.
  grpc::ServerUnaryReactor* InTurn(grpc::CallbackServerContext* context,
                                   absl::AnyInvocable<absl::Status() &&> work);

  const Parts parts_;
  const NodeIdentity identity_;
  const absl::Time started_;
  std::atomic<int> waiting_{0};  // on the executor, the running one too
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_ADMIN_SERVICE_H_
