// Requests for the logits of a golden case, and how far logits are from it.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_MODEL_GOLDEN_LOGITS_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_MODEL_GOLDEN_LOGITS_H_

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/engine_run.h"

namespace farkv {

// The prompt up to each golden position, in one chunk.
inline std::vector<GenerationRequest> Prefills(const nlohmann::json& golden) {
  const auto tokens = golden["tokens"].get<std::vector<int32_t>>();
  std::vector<GenerationRequest> requests;
  for (const auto& position : golden["positions"]) {
    GenerationRequest& request = requests.emplace_back();
    request.prompt.assign(tokens.begin(),
                          tokens.begin() + position.get<int64_t>() + 1);
    request.max_new_tokens = 1;
    request.ignore_eos = true;
  }
  return requests;
}

// Largest difference over largest logit.
inline double Apart(const float* logits, const std::vector<float>& expected) {
  double largest = 0.0, difference = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    difference =
        std::max(difference, std::abs(double{logits[i]} - double{expected[i]}));
  }
  return difference / largest;
}

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_MODEL_GOLDEN_LOGITS_H_
