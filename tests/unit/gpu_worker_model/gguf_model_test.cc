// A model in a GGUF file against its twin in safetensors: the same logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/engine_run.h"
#include "twins.h"

namespace farkv {
namespace {

absl::StatusOr<std::vector<float>> Logits(const std::string& model) {
  EngineOptions options;
  options.model = model;
  options.tiering.t0_bytes = uint64_t{16} << 20;
  GenerationRequest request;
  request.prompt = bench::RandomTokens(3, 1, 70, kVocab);
  request.max_new_tokens = 1;
  auto runs = bench::RunRequests(options, {request}, {.keep_logits = true});
  if (!runs.ok()) return runs.status();
  return runs->front().logits;
}

TEST(GgufModelTest, LogitsAreThoseOfTheTwinInSafetensors) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(TensorTypeName(c.type));
    const Twins twins(c, TwinsFolder(TensorTypeName(c.type)));

    const auto logits = Logits(twins.gguf());
    const auto expected = Logits(twins.safetensors());

    ASSERT_TRUE(logits.ok()) << logits.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(logits->size(), expected->size());
    double largest = 0.0, difference = 0.0;
    for (size_t i = 0; i < expected->size(); ++i) {
      const auto wanted = static_cast<double>((*expected)[i]);
      largest = std::max(largest, std::abs(wanted));
      difference = std::max(
          difference, std::abs(static_cast<double>((*logits)[i]) - wanted));
    }
    EXPECT_GT(largest, 0.0);
    EXPECT_LE(difference, c.tolerance * largest);
  }
}

}  // namespace
}  // namespace farkv
