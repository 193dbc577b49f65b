// GenerationService over the engine, by gRPC's callback API: handlers never
// block. Closing the stream or its deadline cancels the request. Thread-safe.
#ifndef FARKV_GPU_WORKER_SERVICE_GENERATION_SERVICE_H_
#define FARKV_GPU_WORKER_SERVICE_GENERATION_SERVICE_H_

#include "farkv/worker/v1/generation_service.grpc.pb.h"
#include "gpu_worker/engine/engine.h"

namespace farkv {

class GenerationServiceImpl final
    : public farkv::worker::v1::GenerationService::CallbackService {
 public:
  // `engine` must outlive the service.
  // In the .cc, as the destructor is: what they instantiate of gRPC takes ten
  // seconds to compile, wherever it is.
  explicit GenerationServiceImpl(Engine& engine);
  ~GenerationServiceImpl() override;

  grpc::ServerWriteReactor<farkv::worker::v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const farkv::worker::v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* Abort(
      grpc::CallbackServerContext* context,
      const farkv::worker::v1::AbortRequest* request,
      farkv::worker::v1::AbortResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(
      grpc::CallbackServerContext* context,
      const farkv::worker::v1::GetModelRequest* request,
      farkv::worker::v1::GetModelResponse* response) override;
  grpc::ServerUnaryReactor* GetLoad(
      grpc::CallbackServerContext* context,
      const farkv::worker::v1::GetLoadRequest* request,
      farkv::worker::v1::GetLoadResponse* response) override;

 private:
  Engine& engine_;
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_SERVICE_GENERATION_SERVICE_H_
