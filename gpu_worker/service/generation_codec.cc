#include "gpu_worker/service/generation_codec.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/text_checks.h"
#include "gpu_worker/service/tier_options_codec.h"
#include "gpu_worker/tokenizer/chat_template.h"
#include "gpu_worker/tokenizer/tokenizer.h"

namespace farkv {
namespace {

using worker::v1::GenerateRequest;

// Fields of the API that this release knows but does not serve.
absl::Status CheckServed(const GenerateRequest& request) {
  if (!request.has_priority()) return absl::OkStatus();
  return absl::UnimplementedError(
      "priority is set; this worker does not serve it");
}

absl::Status CheckPromptBytes(size_t bytes, const Model& model) {
  const size_t limit = static_cast<size_t>(model.config.max_position) *
                       model.tokenizer.longest_piece();
  if (bytes > 0 && bytes <= limit) return absl::OkStatus();
  if (bytes == 0) return absl::InvalidArgumentError("the prompt is empty");
  return absl::InvalidArgumentError(absl::StrCat(
      "the prompt has ", bytes, " bytes; no prompt of more than ", limit,
      " can fit the model's ", model.config.max_position, " positions"));
}

// The token that goes before a text: the tokenizer's word, or else the
// config's.
std::optional<int32_t> BeginToken(const Model& model) {
  const Tokenizer& tokenizer = model.tokenizer;
  if (!tokenizer.add_bos().value_or(true)) return std::nullopt;
  if (tokenizer.bos_token()) return tokenizer.bos_token();
  if (model.config.bos_token < 0) return std::nullopt;
  return model.config.bos_token;
}

absl::StatusOr<std::vector<int32_t>> ReadText(const std::string& text,
                                              const Model& model) {
  FARKV_RETURN_IF_ERROR(CheckPromptBytes(text.size(), model));
  FARKV_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                         model.tokenizer.Encode(text));
  const std::optional<int32_t> begin = BeginToken(model);
  if (begin && (tokens.empty() || tokens.front() != *begin)) {
    tokens.insert(tokens.begin(), *begin);
  }
  return tokens;
}

// The template puts all special tokens and marks; the messages can write none.
absl::StatusOr<std::vector<int32_t>> ReadChat(const worker::v1::Chat& chat,
                                              const Model& model) {
  FARKV_RETURN_IF_ERROR(model.chat.status());
  std::vector<ChatTurn> turns;
  size_t bytes = 0;
  for (const auto& message : chat.messages()) {
    turns.push_back({message.role(), message.content()});
    bytes += message.content().size();
  }
  FARKV_RETURN_IF_ERROR(CheckPromptBytes(bytes, model));
  FARKV_ASSIGN_OR_RETURN(
      const std::vector<TextPart> parts,
      model.chat->Render(turns, absl::FormatTime("%d %b %Y", absl::Now(),
                                                 absl::UTCTimeZone())));
  return model.tokenizer.Encode(parts);
}

absl::StatusOr<std::vector<int32_t>> ReadPrompt(const GenerateRequest& request,
                                                const Model& model) {
  if (request.has_token_ids()) {
    const auto& ids = request.token_ids().ids();
    return std::vector<int32_t>(ids.begin(), ids.end());
  }
  FARKV_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                         request.has_chat() ? ReadChat(request.chat(), model)
                                            : ReadText(request.text(), model));
  if (tokens.empty()) {
    return absl::InvalidArgumentError("the prompt has no token");
  }
  return tokens;
}

void ReadSampling(const worker::v1::SamplingOptions& proto,
                  SamplingOptions& sampling) {
  if (proto.has_temperature()) sampling.temperature = proto.temperature();
  if (proto.has_top_p()) sampling.top_p = proto.top_p();
  if (proto.has_top_k()) sampling.top_k = proto.top_k();
  if (proto.has_seed()) sampling.seed = proto.seed();
  if (proto.has_min_p()) sampling.min_p = proto.min_p();
  if (proto.has_repetition_penalty()) {
    sampling.repetition_penalty = proto.repetition_penalty();
  }
  if (proto.has_frequency_penalty()) {
    sampling.frequency_penalty = proto.frequency_penalty();
  }
  if (proto.has_presence_penalty()) {
    sampling.presence_penalty = proto.presence_penalty();
  }
  sampling.logit_bias.assign(proto.logit_bias().begin(),
                             proto.logit_bias().end());
}

void ReadOutputs(const GenerateRequest& proto, GenerationRequest& request) {
  if (proto.sampling().has_n()) request.num_outputs = proto.sampling().n();
  request.logprobs = proto.logprobs();
  request.prompt_logprobs = proto.prompt_logprobs();
  request.top_logprobs = proto.top_logprobs();
}

void ReadStopping(const worker::v1::StoppingOptions& proto,
                  GenerationRequest& request) {
  if (proto.has_max_new_tokens()) {
    request.max_new_tokens = proto.max_new_tokens();
  }
  if (proto.has_min_new_tokens()) {
    request.min_new_tokens = proto.min_new_tokens();
  }
  request.stop_texts.assign(proto.stop_texts().begin(),
                            proto.stop_texts().end());
  request.stop_tokens.assign(proto.stop_token_ids().begin(),
                             proto.stop_token_ids().end());
  request.ignore_eos = proto.ignore_eos();
  request.include_stop = proto.include_stop_in_output();
}

worker::v1::FinishReason ReasonToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return worker::v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return worker::v1::FINISH_REASON_LENGTH;
    case FinishReason::kCancelled:
      return worker::v1::FINISH_REASON_CANCELLED;
    case FinishReason::kDeadline:
      return worker::v1::FINISH_REASON_DEADLINE;
    case FinishReason::kError:
      break;
  }
  return worker::v1::FINISH_REASON_UNSPECIFIED;
}

void WriteLogprobs(const TokenLogprobs& from, worker::v1::TokenLogprobs& to) {
  const auto write = [](const TokenLogprob& entry, auto* message) {
    message->set_token_id(entry.token);
    message->set_logprob(entry.logprob);
  };
  if (from.chosen) write(*from.chosen, to.mutable_chosen());
  for (const TokenLogprob& entry : from.top) write(entry, to.add_top());
}

double ShareOf(int64_t part, int64_t whole, double of_nothing) {
  if (whole <= 0) return of_nothing;
  return static_cast<double>(part) / static_cast<double>(whole);
}

void WriteTiers(const SequenceTierStats& stats, worker::v1::TierUsage& usage) {
  const int64_t live = stats.t0_tokens + stats.t1_tokens + stats.t2_tokens;
  const int64_t cold = stats.cold_rows_mapped + stats.cold_rows_fetched +
                       stats.cold_rows_pushed_down;
  usage.set_t0_tokens(stats.t0_tokens);
  usage.set_t1_tokens(stats.t1_tokens);
  usage.set_t2_tokens(stats.t2_tokens);
  usage.set_t3_tokens(stats.t3_tokens);
  usage.set_t0_share(ShareOf(stats.t0_tokens, live, 1.0));
  usage.set_t0_peak_bytes(stats.t0_peak_bytes);
  usage.set_staging_peak_bytes(stats.staging_peak_bytes);
  usage.set_stored_pages(stats.stored_pages);
  usage.set_stored_bytes(stats.stored_bytes);
  usage.set_promoted_tokens(stats.promoted_tokens);
  usage.set_demoted_tokens(stats.demoted_tokens);
  usage.set_cold_rows_mapped(stats.cold_rows_mapped);
  usage.set_cold_rows_fetched(stats.cold_rows_fetched);
  usage.set_cold_rows_pushed_down(stats.cold_rows_pushed_down);
  usage.set_cold_rows_read(cold);
  usage.set_pushdown_share(ShareOf(stats.cold_rows_pushed_down, cold, 0.0));
  usage.set_cold_bytes_fetched(stats.cold_bytes_fetched);
  usage.set_late_fetches(stats.late_fetches);
  usage.set_recomputed_tokens(stats.recomputed_tokens);
  usage.set_plans(stats.plans);
  usage.set_deferred_drops(stats.deferred_drops);
  usage.set_destroyed_rows(stats.destroyed_rows);
  usage.set_evictions(stats.evictions);
  usage.set_destroyed_share(stats.destroyed_share);
  usage.set_destroyed_share_average(stats.destroyed_share_average);
  usage.set_postponed_evictions(stats.postponed_evictions);
  usage.set_skipped_evictions(stats.skipped_evictions);
  usage.set_node_evictions(stats.node_evictions);
  usage.set_lost_score_collections(stats.lost_score_collections);
  usage.set_selected_groups(stats.selected_groups);
  usage.set_skipped_groups(stats.skipped_groups);
  usage.set_undone_promotions(stats.undone_promotions);
  usage.set_lossy_tokens(stats.lossy_tokens);
  usage.set_exactness(
      stats.rows_were_destroyed    ? worker::v1::OUTPUT_EXACTNESS_EVICTED
      : stats.skipped_groups > 0   ? worker::v1::OUTPUT_EXACTNESS_SELECTED
      : stats.compressed_pages > 0 ? worker::v1::OUTPUT_EXACTNESS_EIGHT_BIT
                                   : worker::v1::OUTPUT_EXACTNESS_BITWISE);
}

}  // namespace

absl::StatusOr<GenerationRequest> FromProto(const GenerateRequest& proto,
                                            const Model& model,
                                            const EngineOptions& options) {
  FARKV_RETURN_IF_ERROR(CheckServed(proto));
  GenerationRequest request;
  request.request_id = proto.request_id();
  request.sampling.seed = options.seed;
  FARKV_ASSIGN_OR_RETURN(request.prompt, ReadPrompt(proto, model));
  ReadSampling(proto.sampling(), request.sampling);
  ReadOutputs(proto, request);
  ReadStopping(proto.stopping(), request);
  request.forced.assign(proto.forced_tokens().ids().begin(),
                        proto.forced_tokens().ids().end());
  FARKV_RETURN_IF_ERROR(ReadTierOptions(proto.tiers(), options, request));
  return request;
}

worker::v1::Delta ToDelta(const GenerationEvent& event) {
  worker::v1::Delta delta;
  delta.set_output_index(event.output);
  // A model may choose bytes that make no character.
  delta.set_text(ReplaceInvalidUtf8(event.text));
  for (int32_t token : event.tokens) delta.add_token_ids(token);
  for (const TokenLogprobs& entry : event.logprobs) {
    WriteLogprobs(entry, *delta.add_logprobs());
  }
  for (const TokenLogprobs& entry : event.prompt_logprobs) {
    WriteLogprobs(entry, *delta.add_prompt_logprobs());
  }
  return delta;
}

worker::v1::Finished ToFinished(const GenerationEnd& end) {
  worker::v1::Finished finished;
  finished.set_reason(ReasonToProto(end.reason));
  if (end.stop_text) finished.set_stop_text(*end.stop_text);
  if (end.stop_token) finished.set_stop_token_id(*end.stop_token);
  auto* usage = finished.mutable_usage();
  usage->set_prompt_tokens(end.prompt_tokens);
  usage->set_completion_tokens(end.completion_tokens);
  usage->set_reasoning_tokens(end.reasoning_tokens);
  usage->set_seed(end.seed);
  WriteTiers(end.tiers, *finished.mutable_tiers());
  return finished;
}

}  // namespace farkv
