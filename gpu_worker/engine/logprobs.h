// Log probabilities of tokens: the log-softmax of the model's own logits,
// before bias, penalties, temperature and cuts, which is what vLLM reports by
// default
// ("raw_logprobs"). Sums run in f64 over the ids in order, so the bits depend
// on the logits only. Pure.
#ifndef FARKV_GPU_WORKER_ENGINE_LOGPROBS_H_
#define FARKV_GPU_WORKER_ENGINE_LOGPROBS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace farkv {

// vLLM's limit.
inline constexpr int32_t kMaxTopLogprobs = 20;

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0f;

  bool operator==(const TokenLogprob&) const = default;
};

struct TokenLogprobs {
  std::optional<TokenLogprob> chosen;  // not of a prompt's first token
  // By falling logprob, of equal ones the lower id first; `chosen` may be one.
  std::vector<TokenLogprob> top;

  bool operator==(const TokenLogprobs&) const = default;
};

// Of a row of finite logits; `top` gets as many as the vocabulary has.
TokenLogprobs LogprobsOf(std::span<const float> logits, int32_t chosen,
                         int32_t top);

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_ENGINE_LOGPROBS_H_
