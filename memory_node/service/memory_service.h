// MemoryNodeService over the directory. Handlers decode, call, encode; what
// may take long (new slabs) runs on the executor. Thread-safe.
#ifndef FARKV_MEMORY_NODE_SERVICE_MEMORY_SERVICE_H_
#define FARKV_MEMORY_NODE_SERVICE_MEMORY_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "common/async/executor.h"
#include "common/policy/eviction_call.h"
#include "farkv/memory/v1/memory_service.grpc.pb.h"
#include "memory_node/directory/directory.h"
#include "memory_node/pool/page_pool.h"
#include "memory_node/service/node_events.h"
#include "memory_node/service/plan_admission.h"

namespace farkv {

// What a grant says beside the directory's part.
struct NodeAddresses {
  std::string node_id;
  std::string data_host;
  uint16_t data_port = 0;
  std::string map_socket;  // file name inside --map-dir; empty: no map
};

class MemoryService final
    : public farkv::memory::v1::MemoryNodeService::CallbackService {
 public:
  // Calls of DecideEvictions at a time, above it RESOURCE_EXHAUSTED; each may
  // carry 65,536 positions. Of ApplyTierPlan: plan_admission.h.
  static constexpr int kMaxDecisions = 32;

  // Borrowed, outlive the service. `on_session_change` runs after a lease was
  // given that may end before all others, and after a session was closed of
  // which others keep something. Plans that compress run on
  // `compress_executor` and decisions on `decide_executor`, so that other plans
  // do not wait for them; `decide` is memory_node/data/decide_handler.h. While
  // `check_serving` gives an error, OpenSession does; it may be empty.
  struct Parts {
    Directory* directory = nullptr;
    PagePool* pool = nullptr;
    NodeEvents* events = nullptr;
    Executor* executor = nullptr;
    Executor* compress_executor = nullptr;
    Executor* decide_executor = nullptr;
    std::function<void()> on_session_change;
    std::function<absl::Status()> check_serving;
    std::function<absl::StatusOr<EvictionReply>(EvictionCall)> decide;
  };
  // In the .cc, as the destructor is: what they instantiate of gRPC takes ten
  // seconds to compile, wherever it is.
  MemoryService(Parts parts, NodeAddresses addresses);
  ~MemoryService() override;

  grpc::ServerUnaryReactor* OpenSession(
      grpc::CallbackServerContext* context,
      const farkv::memory::v1::OpenSessionRequest* request,
      farkv::memory::v1::OpenSessionResponse* response) override;
  grpc::ServerUnaryReactor* RenewLeases(
      grpc::CallbackServerContext* context,
      const farkv::memory::v1::RenewLeasesRequest* request,
      farkv::memory::v1::RenewLeasesResponse* response) override;
  grpc::ServerUnaryReactor* ApplyTierPlan(
      grpc::CallbackServerContext* context,
      const farkv::memory::v1::ApplyTierPlanRequest* request,
      farkv::memory::v1::ApplyTierPlanResponse* response) override;
  grpc::ServerUnaryReactor* DecideEvictions(
      grpc::CallbackServerContext* context,
      const farkv::memory::v1::DecideEvictionsRequest* request,
      farkv::memory::v1::DecideEvictionsResponse* response) override;
  grpc::ServerUnaryReactor* CloseSession(
      grpc::CallbackServerContext* context,
      const farkv::memory::v1::CloseSessionRequest* request,
      farkv::memory::v1::CloseSessionResponse* response) override;
  grpc::ServerWriteReactor<farkv::memory::v1::WatchNodeResponse>* WatchNode(
      grpc::CallbackServerContext* context,
      const farkv::memory::v1::WatchNodeRequest* request) override;

 private:
  const Parts parts_;
  const NodeAddresses addresses_;
  PlanAdmission plans_;
  std::atomic<int> decisions_ = 0;  // queued or running
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_SERVICE_MEMORY_SERVICE_H_
