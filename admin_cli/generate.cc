#include <iostream>
#include <nlohmann/json.hpp>

#include "admin_cli/commands.h"
#include "admin_cli/message_fields.h"
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
  auto* stopping = request.mutable_stopping();
  if (o.max_new_tokens) stopping->set_max_new_tokens(*o.max_new_tokens);
  for (const auto& stop : o.stop_texts) stopping->add_stop_texts(stop);
  for (int32_t id : o.stop_ids) stopping->add_stop_token_ids(id);
  if (o.ignore_eos) stopping->set_ignore_eos(true);
}

void AddMessage(const char* role, const std::string& content, Chat& chat) {
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
  for (int32_t id : o.forced_ids) request.mutable_forced_tokens()->add_ids(id);
  FillTiers(o, request);
  if (!o.prompt_ids.empty()) {
    for (int32_t id : o.prompt_ids) request.mutable_token_ids()->add_ids(id);
    return request;
  }
  if (!o.chat) {
    request.set_text(o.prompt);
    return request;
  }
  if (!o.system.empty())
    AddMessage("system", o.system, *request.mutable_chat());
  AddMessage("user", o.prompt, *request.mutable_chat());
  return request;
}

const char* ReasonName(FinishReason reason) {
  switch (reason) {
    case FINISH_REASON_STOP:
      return "stop";
    case FINISH_REASON_LENGTH:
      return "length";
    case FINISH_REASON_CANCELLED:
      return "cancelled";
    case FINISH_REASON_DEADLINE:
      return "deadline";
    default:
      return "unspecified";
  }
}

// Collects the stream; prints text as it comes unless JSON was asked for.
class Collector {
 public:
  explicit Collector(bool json) : json_(json) {}

  void Take(const GenerateResponse& response) {
    if (response.has_delta()) {
      text_ += response.delta().text();
      tokens_.insert(tokens_.end(), response.delta().token_ids().begin(),
                     response.delta().token_ids().end());
      if (!json_) std::cout << response.delta().text() << std::flush;
    }
    if (response.has_finished()) finished_ = response.finished();
    if (response.has_error()) error_ = response.error();
    request_id_ = response.request_id();
  }

  nlohmann::ordered_json Document() const {
    nlohmann::ordered_json document;
    document["apiVersion"] = "farkv/v1";
    document["kind"] = "Generation";
    document["requestId"] = request_id_;
    document["text"] = text_;
    document["tokenIds"] = tokens_;
    document["finishReason"] = ReasonName(finished_.reason());
    document["usage"] = {
        {"promptTokens", finished_.usage().prompt_tokens()},
        {"completionTokens", finished_.usage().completion_tokens()},
        {"seed", finished_.usage().seed()}};
    document["tiers"] = MessageFields(finished_.tiers());
    return document;
  }

  const std::optional<GenerateError>& error() const { return error_; }

  // An error where the output is not all that was asked for.
  absl::Status Completeness() const {
    switch (finished_.reason()) {
      case FINISH_REASON_STOP:
      case FINISH_REASON_LENGTH:
        return absl::OkStatus();
      case FINISH_REASON_CANCELLED:
        return absl::CancelledError(
            absl::StrCat("the request was cancelled after ", tokens_.size(),
                         " tokens, by a worker that ends or by an abort"));
      case FINISH_REASON_DEADLINE:
        return absl::DeadlineExceededError(absl::StrCat(
            "the request's time was over after ", tokens_.size(), " tokens"));
      default:
        return absl::InternalError(
            absl::StrCat("the stream ended after ", tokens_.size(), " tokens"));
    }
  }

 private:
  bool json_;
  std::string request_id_, text_;
  std::vector<int32_t> tokens_;
  Finished finished_;
  std::optional<GenerateError> error_;
};

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
  Collector collector(options.output.IsDocument());
  for (GenerateResponse response; reader->Read(&response);) {
    collector.Take(response);
  }
  const absl::Status status = FromGrpcStatus(reader->Finish());
  if (!status.ok()) {
    PrintError(generate.worker, status);
    return absl::IsUnavailable(status) ? kExitUnhealthy : kExitError;
  }
  if (collector.error()) {
    PrintError(
        generate.worker,
        absl::Status(static_cast<absl::StatusCode>(collector.error()->code()),
                     collector.error()->message()),
        /*answered=*/true);
    return kExitError;
  }
  if (options.output.IsDocument()) {
    PrintDocument(collector.Document(), options.output.format, std::cout);
  } else {
    std::cout << "\n";
    if (generate.usage)
      std::cerr << collector.Document()["tiers"].dump(2) << "\n";
  }
  const absl::Status complete = collector.Completeness();
  if (complete.ok()) return kExitOk;
  PrintError(generate.worker, complete, /*answered=*/true);
  return kExitError;
}

}  // namespace farkv
