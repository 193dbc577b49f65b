// A batch whose cold rows are too many for one step runs in parts.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class SplitStepTest : public EngineOverNodes {
 protected:
  // So that rows are cold as soon as they may be.
  SplitStepTest() { options_.await_stores_every = 8; }
};

TEST_F(SplitStepTest, ABatchThatIsTooLargeRunsInPartsWithTheSameBits) {
  const std::vector<GenerationRequest> requests = {
      Request("first", 32, 500), Request("the second", 48, 500),
      Request("number three", 40, 500)};
  int64_t sets = 2;
  for (const GenerationRequest& request : requests) {
    sets += ShareInSets(request);
  }
  // One of them always fits, two do not in the end.
  options_.tiering.max_layer_fetch_bytes = kGeometry.BlockBytes(600);
  Start(sets, 1);

  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (const GenerationRequest& request : requests) {
    streams.push_back(Submit(request));
  }

  for (size_t i = 0; i < requests.size(); ++i) {
    const Output run = Collect(*streams[i]);
    ExpectAsAlone(run, requests[i]);
    EXPECT_GT(run.end.tiers.cold_rows_fetched, 0);
    EXPECT_EQ(run.end.tiers.recomputed_tokens, 0);
  }
  EXPECT_GT(Count("split_steps_total"), 0);
  ExpectNothingLeft({&a_});
}

TEST_F(SplitStepTest, ASequenceThatIsTooLargeAloneEndsAndSaysWhy) {
  const GenerationRequest large = Request("large", 32, 500);
  GenerationRequest company = Request("company", 32, 500);
  company.hbm_ratio = 10000;  // its rows stay in T0
  options_.tiering.max_layer_fetch_bytes = kGeometry.BlockBytes(200);
  Start(ShareInSets(large) + ShareInSets(company) + 2, 1);

  const auto one = Submit(large);
  const auto two = Submit(company);

  const Output run = Collect(*one);
  EXPECT_EQ(run.end.reason, FinishReason::kError);
  EXPECT_EQ(run.end.error.code(), absl::StatusCode::kResourceExhausted);
  const std::string why(run.end.error.message());
  EXPECT_THAT(why, HasSubstr("sequence large would fetch "));
  EXPECT_THAT(why, HasSubstr("of one layer from node a"));
  EXPECT_THAT(why, HasSubstr("may be 100KiB at most"));
  Output alone = Alone(large);
  ASSERT_LT(run.tokens.size(), alone.tokens.size());
  alone.tokens.resize(run.tokens.size());
  EXPECT_EQ(run.tokens, alone.tokens);
  ExpectAsAlone(Collect(*two), company);
}

}  // namespace
}  // namespace farkv
