#include "gpu_worker/engine/generation.h"

#include "absl/strings/str_cat.h"
#include "common/base/check_range.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"

namespace farkv {
namespace {

absl::Status CheckTokens(const char* field, const std::vector<int32_t>& tokens,
                         int32_t vocab_size, int32_t least = 0) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < least || tokens[i] >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, "[", i, "] is token ", tokens[i],
                       ", must lie in [", least, ", ", vocab_size, ")"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStops(const std::vector<std::string>& stops) {
  if (stops.size() > kMaxStops) {
    return absl::InvalidArgumentError(
        absl::StrCat("stopping.stop_texts has ", stops.size(),
                     " items, at most ", kMaxStops, " allowed"));
  }
  for (const std::string& stop : stops) {
    if (stop.empty() || stop.size() > kMaxStopBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a stop text has ", stop.size(),
                       " bytes, must have 1 to ", kMaxStopBytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(const GenerationRequest& request) {
  FARKV_RETURN_IF_ERROR(
      CheckRange("sampling.n", request.num_outputs, 1, kMaxOutputs));
  if (request.num_outputs == 1 || request.sampling.temperature > 0.0f) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("sampling.n is ", request.num_outputs,
                   ", must be 1 where sampling.temperature is 0: all outputs "
                   "would be the same"));
}

absl::Status CheckLogprobs(const GenerationRequest& request) {
  FARKV_RETURN_IF_ERROR(
      CheckRange("top_logprobs", request.top_logprobs, 0, kMaxTopLogprobs));
  if (request.top_logprobs == 0 || request.logprobs ||
      request.prompt_logprobs) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("top_logprobs is ", request.top_logprobs,
                   ", must be 0 without logprobs and prompt_logprobs"));
}

}  // namespace

absl::Status GenerationRequest::Validate(int32_t vocab_size,
                                         int64_t max_position) const {
  if (request_id.size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id has ", request_id.size(), " bytes, at most ",
                     kMaxRequestIdBytes, " allowed"));
  }
  if (absl::Status s = CheckPrintable(request_id); !s.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("request_id ", s.message()));
  }
  if (stop_tokens.size() > kMaxStopTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("stopping.stop_token_ids has ", stop_tokens.size(),
                     " items, at most ", kMaxStopTokens, " allowed"));
  }
  if (prompt.empty()) {
    return absl::InvalidArgumentError("the prompt is empty");
  }
  FARKV_RETURN_IF_ERROR(CheckTokens("prompt", prompt, vocab_size));
  FARKV_RETURN_IF_ERROR(
      CheckTokens("forced_tokens", forced, vocab_size, kFreeToken));
  FARKV_RETURN_IF_ERROR(
      CheckTokens("stopping.stop_token_ids", stop_tokens, vocab_size));
  FARKV_RETURN_IF_ERROR(sampling.Validate(vocab_size));
  FARKV_RETURN_IF_ERROR(CheckRange("stopping.max_new_tokens", max_new_tokens, 1,
                                   kMaxRequestTokens));
  FARKV_RETURN_IF_ERROR(
      CheckRange("stopping.min_new_tokens", min_new_tokens, 0, max_new_tokens));
  FARKV_RETURN_IF_ERROR(CheckRange("the number of forced tokens",
                                   static_cast<int64_t>(forced.size()), 0,
                                   max_new_tokens));
  FARKV_RETURN_IF_ERROR(CheckStops(stop_texts));
  FARKV_RETURN_IF_ERROR(CheckOutputs(*this));
  FARKV_RETURN_IF_ERROR(CheckLogprobs(*this));
  const auto total = static_cast<int64_t>(prompt.size()) + max_new_tokens;
  if (total > max_position) {
    return absl::InvalidArgumentError(
        absl::StrCat("the prompt of ", prompt.size(),
                     " tokens and max_new_tokens ", max_new_tokens, " make ",
                     total, " positions; the model has ", max_position));
  }
  return absl::OkStatus();
}

}  // namespace farkv
