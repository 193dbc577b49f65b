#include "admin_cli/generation_result.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin_cli/message_fields.h"

namespace farkv {
namespace {

using namespace worker::v1;  // NOLINT: the messages of the worker

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

nlohmann::ordered_json Fields(const TokenLogprob& entry) {
  return {{"tokenId", entry.token_id()}, {"logprob", entry.logprob()}};
}

// null for a prompt's first token.
nlohmann::ordered_json Fields(const std::vector<TokenLogprobs>& entries) {
  auto list = nlohmann::ordered_json::array();
  for (const TokenLogprobs& entry : entries) {
    if (!entry.has_chosen()) {
      list.push_back(nullptr);
      continue;
    }
    nlohmann::ordered_json fields = Fields(entry.chosen());
    for (const TokenLogprob& top : entry.top()) {
      fields["top"].push_back(Fields(top));
    }
    list.push_back(std::move(fields));
  }
  return list;
}

void PrintLogprobs(const char* what, const std::vector<TokenLogprobs>& entries,
                   std::ostream& out) {
  for (const TokenLogprobs& entry : entries) {
    out << what;
    if (entry.has_chosen()) {
      out << absl::StrFormat(" %d %.4f", entry.chosen().token_id(),
                             entry.chosen().logprob());
    } else {
      out << " -";
    }
    for (const TokenLogprob& top : entry.top()) {
      out << absl::StrFormat("  %d:%.4f", top.token_id(), top.logprob());
    }
    out << "\n";
  }
}

}  // namespace

void GenerationResult::Take(const GenerateResponse& response) {
  request_id_ = response.request_id();
  if (response.has_delta()) {
    const Delta& delta = response.delta();
    OutputParts& output = outputs_[delta.output_index()];
    output.text += delta.text();
    output.tokens.insert(output.tokens.end(), delta.token_ids().begin(),
                         delta.token_ids().end());
    output.logprobs.insert(output.logprobs.end(), delta.logprobs().begin(),
                           delta.logprobs().end());
    output.prompt_logprobs.insert(output.prompt_logprobs.end(),
                                  delta.prompt_logprobs().begin(),
                                  delta.prompt_logprobs().end());
  }
  if (response.has_finished()) {
    outputs_[response.finished().output_index()].finished = response.finished();
  }
  if (response.has_error()) error_ = response.error();
}

nlohmann::ordered_json GenerationResult::Fields(const OutputParts& output) {
  const Finished& finished = output.finished;
  const Usage& usage = finished.usage();
  nlohmann::ordered_json fields;
  fields["text"] = output.text;
  fields["tokenIds"] = output.tokens;
  fields["finishReason"] = ReasonName(finished.reason());
  if (finished.has_stop_text()) fields["stopText"] = finished.stop_text();
  if (finished.has_stop_token_id()) {
    fields["stopTokenId"] = finished.stop_token_id();
  }
  fields["usage"] = {{"promptTokens", usage.prompt_tokens()},
                     {"completionTokens", usage.completion_tokens()},
                     {"reasoningTokens", usage.reasoning_tokens()},
                     {"seed", usage.seed()}};
  if (!output.logprobs.empty()) {
    fields["logprobs"] = farkv::Fields(output.logprobs);
  }
  if (!output.prompt_logprobs.empty()) {
    fields["promptLogprobs"] = farkv::Fields(output.prompt_logprobs);
  }
  fields["tiers"] = MessageFields(finished.tiers());
  return fields;
}

nlohmann::ordered_json GenerationResult::Document() const {
  nlohmann::ordered_json document;
  document["apiVersion"] = "farkv/v1";
  document["kind"] = "Generation";
  document["requestId"] = request_id_;
  document.update(Fields(outputs_.begin()->second));
  if (outputs_.size() == 1) return document;
  for (const auto& [index, output] : outputs_) {
    nlohmann::ordered_json fields = {{"index", index}};
    fields.update(Fields(output));
    document["outputs"].push_back(std::move(fields));
  }
  return document;
}

void GenerationResult::Print(std::ostream& out) const {
  for (const auto& [index, output] : outputs_) {
    if (outputs_.size() > 1) out << "--- output " << index << "\n";
    out << output.text << "\n";
    PrintLogprobs("prompt", output.prompt_logprobs, out);
    PrintLogprobs("output", output.logprobs, out);
  }
}

void GenerationResult::PrintTiers(std::ostream& out) const {
  for (const auto& [index, output] : outputs_) {
    out << MessageFields(output.finished.tiers()).dump(2) << "\n";
  }
}

absl::Status GenerationResult::Completeness(const OutputParts& output) {
  const size_t tokens = output.tokens.size();
  switch (output.finished.reason()) {
    case FINISH_REASON_STOP:
    case FINISH_REASON_LENGTH:
      return absl::OkStatus();
    case FINISH_REASON_CANCELLED:
      return absl::CancelledError(
          absl::StrCat("the request was cancelled after ", tokens,
                       " tokens, by a worker that ends or by an abort"));
    case FINISH_REASON_DEADLINE:
      return absl::DeadlineExceededError(absl::StrCat(
          "the request's time was over after ", tokens, " tokens"));
    default:
      return absl::InternalError(
          absl::StrCat("the stream ended after ", tokens, " tokens"));
  }
}

absl::Status GenerationResult::Completeness() const {
  for (const auto& [index, output] : outputs_) {
    const absl::Status status = Completeness(output);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace farkv
