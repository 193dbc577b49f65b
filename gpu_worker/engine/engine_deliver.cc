// What the logits of a step give: log probabilities of prompts, and tokens.
#include "absl/strings/str_cat.h"
#include "gpu_worker/engine/engine_loop.h"

namespace farkv {

void Engine::Loop::Deliver(const Batch& batch, std::span<const int64_t> rows) {
  const auto vocab = static_cast<size_t>(model_.config.vocab_size);
  std::span<float> rest(logits_);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (rows[i] == 0) continue;
    RunningSequence& sequence = *batch[i];
    const int64_t logit_rows = sequence.logit_rows(rows[i]);
    const auto logits = rest.first(vocab * static_cast<size_t>(logit_rows));
    rest = rest.subspan(logits.size());
    const bool prefilling = sequence.prefilling();
    const int64_t again = sequence.Advance(rows[i]);
    metrics_.recomputed_tokens.Increment(static_cast<double>(again));
    if (prefilling) {
      metrics_.prompt_tokens.Increment(static_cast<double>(rows[i] - again));
    }
    if (!AllFinite(logits)) {
      Fail(sequence,
           absl::DataLossError(absl::StrCat(
               "the logits behind position ", sequence.processed() - 1,
               " are not finite: the model's weights are damaged or "
               "overflow in this type")));
      continue;
    }
    sequence.ReportPrompt(logits, logit_rows);
    if (sequence.pending().empty()) ChooseToken(sequence, logits.last(vocab));
  }
}

// `logits` are those behind its last token.
void Engine::Loop::ChooseToken(RunningSequence& sequence,
                               std::span<float> logits) {
  if (options_.logit_sink) {
    options_.logit_sink(sequence.request().request_id, sequence.processed(),
                        logits);
  }
  if (options_.cache_sink) {
    options_.cache_sink(*this, sequence.request().request_id,
                        sequence.processed());
  }
  const absl::Time now = absl::Now();
  const bool first = sequence.generated() == 0;
  (first ? metrics_.first_token_seconds : metrics_.token_seconds)
      .Observe(absl::ToDoubleSeconds(now - sequence.last_token));
  sequence.last_token = now;
  metrics_.generated_tokens.Increment();
  auto end =
      sequence.Accept(logits, model_.tokenizer, model_.config.eos_tokens);
  if (end.has_value()) End(sequence, *std::move(end));
}

}  // namespace farkv
