#include <iostream>

#include "admin_cli/commands.h"
#include "admin_cli/generation_result.h"
#include "admin_cli/output.h"
#include "admin_cli/peers.h"
#include "common/rpc/status_codec.h"
#include "farkv/worker/v1/generation_service.grpc.pb.h"

namespace farkv {
namespace {

using namespace worker::v1;  // NOLINT: the messages of the worker

void FillSampling(const GenerateOptions& o, GenerateRequest& request) {
  auto* sampling = request.mutable_sampling();
  if (o.temperature) sampling->set_temperature(*o.temperature);
  if (o.top_p) sampling->set_top_p(*o.top_p);
  if (o.top_k) sampling->set_top_k(*o.top_k);
  if (o.seed) sampling->set_seed(*o.seed);
  if (o.min_p) sampling->set_min_p(*o.min_p);
  if (o.repetition_penalty) {
    sampling->set_repetition_penalty(*o.repetition_penalty);
  }
  if (o.frequency_penalty) {
    sampling->set_frequency_penalty(*o.frequency_penalty);
  }
  if (o.presence_penalty) sampling->set_presence_penalty(*o.presence_penalty);
  for (const auto& [token, bias] : o.logit_bias) {
    (*sampling->mutable_logit_bias())[token] = bias;
  }
  if (o.outputs) sampling->set_n(*o.outputs);
}

void FillStopping(const GenerateOptions& o, GenerateRequest& request) {
  auto* stopping = request.mutable_stopping();
  if (o.max_new_tokens) stopping->set_max_new_tokens(*o.max_new_tokens);
  if (o.min_new_tokens) stopping->set_min_new_tokens(*o.min_new_tokens);
  for (const auto& stop : o.stop_texts) stopping->add_stop_texts(stop);
  for (int32_t id : o.stop_ids) stopping->add_stop_token_ids(id);
  if (o.ignore_eos) stopping->set_ignore_eos(true);
  if (o.include_stop) stopping->set_include_stop_in_output(true);
}

void FillLogprobs(const GenerateOptions& o, GenerateRequest& request) {
  if (o.logprobs) request.set_logprobs(true);
  if (o.prompt_logprobs) request.set_prompt_logprobs(true);
  if (o.top_logprobs) request.set_top_logprobs(*o.top_logprobs);
}

void AddMessage(const std::string& role, const std::string& content,
                Chat& chat) {
  ChatMessage* message = chat.add_messages();
  message->set_role(role);
  message->set_content(content);
}

void FillTiers(const GenerateOptions& o, GenerateRequest& request) {
  if (o.hbm_ratio) request.mutable_tiers()->set_hbm_ratio(*o.hbm_ratio);
  if (o.eviction) request.mutable_tiers()->set_eviction(*o.eviction);
  if (o.per_event_ratio) {
    request.mutable_tiers()->set_per_event_ratio(*o.per_event_ratio);
  }
  if (o.cumulative_cap) {
    request.mutable_tiers()->set_cumulative_cap(*o.cumulative_cap);
  }
  if (o.budget_tokens) {
    request.mutable_tiers()->set_budget_tokens(*o.budget_tokens);
  }
  if (o.budget_ratio) {
    request.mutable_tiers()->set_budget_ratio(*o.budget_ratio);
  }
  if (o.selection) request.mutable_tiers()->set_selection(*o.selection);
}

GenerateRequest MakeRequest(const GenerateOptions& o) {
  GenerateRequest request;
  request.set_request_id(o.request_id);
  FillSampling(o, request);
  FillStopping(o, request);
  FillLogprobs(o, request);
  for (int32_t id : o.forced_ids) request.mutable_forced_tokens()->add_ids(id);
  FillTiers(o, request);
  for (const auto& [role, content] : o.messages) {
    AddMessage(role, content, *request.mutable_chat());
  }
  if (!o.messages.empty()) return request;
  if (!o.prompt_ids.empty()) {
    for (int32_t id : o.prompt_ids) request.mutable_token_ids()->add_ids(id);
    return request;
  }
  if (!o.chat) {
    request.set_text(o.prompt);
    return request;
  }
  if (!o.system.empty()) {
    AddMessage("system", o.system, *request.mutable_chat());
  }
  AddMessage("user", o.prompt, *request.mutable_chat());
  return request;
}

}  // namespace

int Generate(const CliOptions& options, const GenerateOptions& generate) {
  const auto channel = Dial(options, generate.worker);
  if (!channel.ok()) {
    PrintError(generate.worker, channel.status());
    return kExitError;
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(options.timeout));
  const auto stub = GenerationService::NewStub(*channel);
  const auto reader = stub->Generate(&context, MakeRequest(generate));
  // Text is printed as it comes where there is one of it and nothing beside.
  const bool shows_text = !options.output.IsDocument();
  const bool streams = shows_text && generate.outputs.value_or(1) == 1 &&
                       !generate.logprobs && !generate.prompt_logprobs;
  GenerationResult result;
  for (GenerateResponse response; reader->Read(&response);) {
    result.Take(response);
    if (streams) std::cout << response.delta().text() << std::flush;
  }
  const absl::Status status = FromGrpcStatus(reader->Finish());
  if (!status.ok()) {
    PrintError(generate.worker, status);
    return absl::IsUnavailable(status) ? kExitUnhealthy : kExitError;
  }
  if (result.error()) {
    PrintError(
        generate.worker,
        absl::Status(static_cast<absl::StatusCode>(result.error()->code()),
                     result.error()->message()),
        /*answered=*/true);
    return kExitError;
  }
  if (shows_text) {
    if (!streams) result.Print(std::cout);
    if (streams) std::cout << "\n";
    if (generate.usage) result.PrintTiers(std::cerr);
  } else {
    PrintDocument(result.Document(), options.output.format, std::cout);
  }
  const absl::Status complete = result.Completeness();
  if (complete.ok()) return kExitOk;
  PrintError(generate.worker, complete, /*answered=*/true);
  return kExitError;
}

}  // namespace farkv
