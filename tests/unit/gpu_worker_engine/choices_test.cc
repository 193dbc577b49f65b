// Bias, penalties, least tokens: what a request asks of its choices depends on
// its own tokens only, whatever runs beside it, was forced, or was lost and
// processed again.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;
using ::testing::SizeIs;

class ChoicesTest : public EngineOverNodes {
 protected:
  // Everything at once, hot enough that each of them shows.
  static GenerationRequest Penalised(const std::string& id,
                                     int64_t new_tokens) {
    GenerationRequest request = Request(id, 32, new_tokens);
    request.sampling.temperature = 20.0f;
    request.sampling.seed = 5;
    request.sampling.min_p = 0.3f;
    request.sampling.repetition_penalty = 1.3f;
    request.sampling.frequency_penalty = 0.2f;
    request.sampling.presence_penalty = -0.3f;
    request.sampling.logit_bias = {{3, 4.0f}, {9, -100.0f}};
    return request;
  }
};

TEST_F(ChoicesTest, EachOptionChangesTheTokens) {
  std::set<std::vector<int32_t>> outputs;
  const auto add = [&](auto change) {
    GenerationRequest request = Request("one", 32, 60);
    request.sampling.temperature = 20.0f;
    change(request.sampling);
    outputs.insert(Alone(request).tokens);
  };
  add([](SamplingOptions&) {});
  add([](SamplingOptions& o) { o.min_p = 0.5f; });
  add([](SamplingOptions& o) { o.repetition_penalty = 1.5f; });
  add([](SamplingOptions& o) { o.frequency_penalty = 1.0f; });
  add([](SamplingOptions& o) { o.presence_penalty = 2.0f; });
  add([](SamplingOptions& o) { o.logit_bias = {{3, 8.0f}}; });
  EXPECT_THAT(outputs, SizeIs(6));
}

TEST_F(ChoicesTest, ABiasForcesATokenOrKeepsItOut) {
  GenerationRequest request = Request("one", 32, 40);
  const std::vector<int32_t> plain = Alone(request).tokens;
  request.sampling.logit_bias = {{7, 100.0f}};
  EXPECT_THAT(Alone(request).tokens, Each(7));
  request.sampling.logit_bias = {{plain[0], -100.0f}};
  EXPECT_THAT(Alone(request).tokens, Not(Contains(plain[0])));
}

TEST_F(ChoicesTest, PenaltiesInACrowdChooseAsAlone) {
  options_.max_sequences = 4;
  const GenerationRequest request = Penalised("main", 120);
  Start(4096, 0);
  std::vector<std::shared_ptr<GenerationStream>> others;
  for (const char* id : {"b", "cc", "dddd"}) {
    others.push_back(Submit(Penalised(id, 150)));
  }

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  for (const auto& other : others) Collect(*other);
}

// A forced token counts as a chosen one.
TEST_F(ChoicesTest, PenaltiesAreTheSameWhereTheOutputWasForced) {
  GenerationRequest request = Penalised("main", 80);
  const std::vector<int32_t> all = Alone(request).tokens;
  for (const int64_t forced : {1, 40, 79}) {
    request.forced.assign(all.begin(), all.begin() + forced);
    EXPECT_EQ(Alone(request).tokens, all) << forced;
  }
}

TEST_F(ChoicesTest, PenaltiesAreTheSameWhereRowsWereLostAndRecomputed) {
  const GenerationRequest request = Penalised("main", 400);
  Start(ShareInSets(request) + 2, 1);
  StrikeWhenCold({"main"}, [this] { a_.Restart(); });

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
}

TEST_F(ChoicesTest, NoEndOrStopTokenIsChosenBeforeTheLeastTokens) {
  GenerationRequest request = Request("one", 32, 30);
  request.ignore_eos = false;
  const std::vector<int32_t> plain = Alone(request).tokens;
  request.stop_tokens = {plain[0], plain[1]};
  request.min_new_tokens = 20;

  const Output late = Alone(request);

  ASSERT_GE(late.tokens.size(), 20u);
  const std::vector<int32_t> least(late.tokens.begin(),
                                   late.tokens.begin() + 20);
  EXPECT_THAT(least, Not(Contains(plain[0])));
  EXPECT_THAT(least, Not(Contains(plain[1])));
  // As a bias that keeps them out would have it, but for the end.
  request.stop_tokens.clear();
  request.ignore_eos = true;
  request.sampling.logit_bias = {{plain[0], -100.0f}, {plain[1], -100.0f}};
  const std::vector<int32_t> biased = Alone(request).tokens;
  EXPECT_TRUE(std::equal(least.begin(), least.end(), biased.begin()));
}

}  // namespace
}  // namespace farkv
