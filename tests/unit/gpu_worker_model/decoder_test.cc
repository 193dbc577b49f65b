// The forward pass against logits of an independent implementation, and its
// independence of chunks and company.
#include "gpu_worker/model/decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/engine_run.h"

namespace farkv {
namespace {

const bench::RunSettings kKeepLogits = {.keep_logits = true};

std::string Reasoner() {
  return std::string(getenv("FARKV_TEST_SOURCE_DIR")) + "/models/reasoner";
}

EngineOptions Options(int prefill_chunk, DType kv_dtype) {
  EngineOptions options;
  options.model = Reasoner();
  options.prefill_chunk = prefill_chunk;
  options.kv_dtype = kv_dtype;
  options.tiering.t0_bytes = uint64_t{64} << 20;
  return options;
}

nlohmann::json Golden() {
  std::ifstream file(Reasoner() + "/golden.json");
  return nlohmann::json::parse(file);
}

TEST(DecoderTest, LogitsAgreeWithTheTrainingFramework) {
  const nlohmann::json golden = Golden();
  const auto prompt = golden["ids"].get<std::vector<int32_t>>();
  for (size_t p = 0; p < golden["positions"].size(); ++p) {
    const auto at = golden["positions"][p].get<size_t>();
    const auto expected = golden["logits"][p].get<std::vector<float>>();
    GenerationRequest request;
    request.prompt.assign(prompt.begin(),
                          prompt.begin() + static_cast<int64_t>(at) + 1);
    request.max_new_tokens = 1;

    const auto runs =
        bench::RunRequests(Options(512, DType::kF32), {request}, kKeepLogits);

    ASSERT_TRUE(runs.ok()) << runs.status();
    const std::vector<float>& logits = runs->front().logits;
    ASSERT_EQ(logits.size(), expected.size());
    float largest = 0.0f, difference = 0.0f;
    for (size_t i = 0; i < logits.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(logits[i] - expected[i]));
    }
    EXPECT_LT(difference, 1e-2f * largest) << "position " << at;
  }
}

TEST(DecoderTest, PrefillChunksAndDecodingGiveTheSameBits) {
  GenerationRequest request;
  request.prompt = bench::RandomTokens(1, 1, 150, 70);
  request.max_new_tokens = 1;
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    const auto whole =
        bench::RunRequests(Options(512, dtype), {request}, kKeepLogits);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int chunk : {1, 7, 64}) {
      const auto parts =
          bench::RunRequests(Options(chunk, dtype), {request}, kKeepLogits);
      ASSERT_TRUE(parts.ok()) << parts.status();
      EXPECT_EQ(std::memcmp(parts->front().logits.data(),
                            whole->front().logits.data(),
                            whole->front().logits.size() * sizeof(float)),
                0)
          << "chunks of " << chunk;
    }
    // Forced, the same tokens are decoded one by one.
    GenerationRequest decoded = request;
    decoded.prompt.resize(1);
    decoded.forced.assign(request.prompt.begin() + 1, request.prompt.end());
    decoded.max_new_tokens = 150;
    const auto steps =
        bench::RunRequests(Options(512, dtype), {decoded}, kKeepLogits);
    ASSERT_TRUE(steps.ok()) << steps.status();
    const size_t vocab = whole->front().logits.size();
    EXPECT_EQ(std::memcmp(steps->front().logits.data() + 149 * vocab,
                          whole->front().logits.data(), vocab * sizeof(float)),
              0);
  }
}

}  // namespace
}  // namespace farkv
