// AdminService of a worker: its T0 pool, running sequences, tier maps, rows
// that it destroyed, peers and drain. Calls about node things answer
// FAILED_PRECONDITION. Thread-safe.
#ifndef FARKV_GPU_WORKER_SERVICE_WORKER_ADMIN_SERVICE_H_
#define FARKV_GPU_WORKER_SERVICE_WORKER_ADMIN_SERVICE_H_

#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "farkv/admin/v1/admin_service.grpc.pb.h"
#include "gpu_worker/engine/engine.h"

namespace farkv {

class WorkerAdminService final
    : public farkv::admin::v1::AdminService::CallbackService {
 public:
  struct Identity {
    std::string worker_id;
    std::map<std::string, std::string> config;  // effective flags
    // As of now; by name.
    std::function<std::map<std::string, double>()> metrics = {};
  };
  // `engine` must outlive the service.
  // In the .cc, as the destructor is: what they instantiate of gRPC takes ten
  // seconds to compile, wherever it is.
  WorkerAdminService(Engine& engine, Identity identity);
  ~WorkerAdminService() override;

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
  grpc::ServerUnaryReactor* Verify(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::VerifyRequest* request,
      farkv::admin::v1::VerifyResponse* response) override;
  grpc::ServerWriteReactor<farkv::admin::v1::DrainResponse>* Drain(
      grpc::CallbackServerContext* context,
      const farkv::admin::v1::DrainRequest* request) override;

 private:
  Engine& engine_;
  const Identity identity_;
  const absl::Time start_;  // of the clock that nobody sets
  const uint64_t epoch_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_SERVICE_WORKER_ADMIN_SERVICE_H_
