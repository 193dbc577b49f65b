#include "gpu_worker/service/generation_service.h"

#include "common/base/status_macros.h"
#include "common/rpc/unary_answer.h"
#include "gpu_worker/service/generate_reactor.h"
#include "gpu_worker/service/generation_codec.h"

namespace farkv {
namespace {

using namespace worker::v1;  // NOLINT: the service's own messages

absl::StatusOr<std::shared_ptr<GenerationStream>> Start(
    Engine& engine, const GenerateRequest& proto, absl::Time deadline) {
  FARKV_ASSIGN_OR_RETURN(GenerationRequest request,
                         FromProto(proto, engine.model(), engine.options()));
  request.deadline = deadline;
  return engine.Submit(std::move(request));
}

}  // namespace

GenerationServiceImpl::GenerationServiceImpl(Engine& engine)
    : engine_(engine) {}

GenerationServiceImpl::~GenerationServiceImpl() = default;

grpc::ServerWriteReactor<GenerateResponse>* GenerationServiceImpl::Generate(
    grpc::CallbackServerContext* context, const GenerateRequest* request) {
  auto stream = Start(engine_, *request, absl::FromChrono(context->deadline()));
  if (!stream.ok()) return GenerateReactor::Refuse(stream.status());
  return GenerateReactor::Follow(*std::move(stream));
}

grpc::ServerUnaryReactor* GenerationServiceImpl::Abort(
    grpc::CallbackServerContext* context, const AbortRequest* request,
    AbortResponse* response) {
  response->set_found(engine_.Abort(request->request_id()));
  return AnswerUnary(context);
}

grpc::ServerUnaryReactor* GenerationServiceImpl::GetModel(
    grpc::CallbackServerContext* context, const GetModelRequest*,
    GetModelResponse* response) {
  const Model& model = engine_.model();
  response->set_name(model.name);
  response->set_architecture(model.config.architecture);
  response->set_vocab_size(model.config.vocab_size);
  response->set_max_position(model.config.max_position);
  response->set_num_layers(model.config.num_layers);
  response->set_num_query_heads(model.config.num_query_heads);
  response->set_num_kv_heads(model.config.num_kv_heads);
  response->set_head_dim(model.config.head_dim);
  response->set_kv_dtype(DTypeName(engine_.options().kv_dtype));
  response->set_num_parameters(model.weights.num_parameters);
  response->set_bos_token_id(model.config.bos_token);
  for (int32_t token : model.config.eos_tokens) {
    response->add_eos_token_ids(token);
  }
  if (model.thoughts) {
    response->set_reasoning_start_token_id(model.thoughts->start);
    response->set_reasoning_end_token_id(model.thoughts->end);
  }
  return AnswerUnary(context);
}

grpc::ServerUnaryReactor* GenerationServiceImpl::GetLoad(
    grpc::CallbackServerContext* context, const GetLoadRequest*,
    GetLoadResponse* response) {
  const EngineLoad load = engine_.Load();
  response->set_running(load.running);
  response->set_waiting(load.waiting);
  response->set_max_sequences(engine_.options().max_sequences);
  response->set_max_queue(engine_.options().max_queue);
  response->set_t0_bytes(static_cast<int64_t>(load.t0.capacity_bytes));
  response->set_t0_used_bytes(static_cast<int64_t>(load.t0.used_bytes));
  response->set_draining(load.draining);
  return AnswerUnary(context);
}

}  // namespace farkv
