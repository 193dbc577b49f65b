// Several outputs of one request: each has the tokens of a request of its own,
// and they come, wait and go together.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class OutputsTest : public EngineOverNodes {
 protected:
  static GenerationRequest Several(const std::string& id, int32_t outputs,
                                   int64_t new_tokens) {
    GenerationRequest request = Request(id, 32, new_tokens);
    request.num_outputs = outputs;
    request.sampling.temperature = 20.0f;
    request.sampling.seed = ~uint64_t{0};  // wraps
    return request;
  }
  static std::vector<Output> CollectAll(GenerationStream& stream) {
    std::vector<Output> all(static_cast<size_t>(stream.num_outputs()));
    for (int32_t left = stream.num_outputs(); left > 0;) {
      GenerationEvent event = stream.WaitAndTake();
      Output& output = all[static_cast<size_t>(event.output)];
      output.tokens.insert(output.tokens.end(), event.tokens.begin(),
                           event.tokens.end());
      if (!event.end) continue;
      output.end = *std::move(event.end);
      --left;
    }
    return all;
  }
};

TEST_F(OutputsTest, EachIsThatOfARequestOfItsOwn) {
  const GenerationRequest request = Several("main", 3, 50);
  Start(4096, 0);
  const std::vector<Output> all = CollectAll(*Submit(request));
  GenerationRequest single = request;
  single.num_outputs = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].tokens, Alone(single).tokens) << i;
    EXPECT_EQ(all[i].end.seed, single.sampling.seed);
    EXPECT_EQ(all[i].end.prompt_tokens, 32);
    EXPECT_EQ(all[i].end.completion_tokens, 50);
    EXPECT_EQ(all[i].end.reason, FinishReason::kLength);
    ++single.sampling.seed;
  }
  EXPECT_NE(all[0].tokens, all[1].tokens);
  EXPECT_NE(all[1].tokens, all[2].tokens);
}

TEST_F(OutputsTest, TheyWaitUntilThereIsRoomForAll) {
  // T0 for three sequences, of which one is taken until the others ask.
  const GenerationRequest first = Request("first", 32, 200);
  const GenerationRequest request = Several("second", 3, 200);
  Start(3 * ShareInSets(first) + 1, 1);
  int most = 0;
  on_token_ = [&most](const EngineView& engine, const std::string& id) {
    if (id != "second") return;
    int running = 0;
    for (const SequenceInfo& info : engine.Sequences()) {
      EXPECT_EQ(info.request_id, "second");
      if (info.state != "waiting") ++running;
    }
    most = std::max(most, running);
  };
  const auto before = Submit(first);

  const std::vector<Output> all = CollectAll(*Submit(request));

  EXPECT_EQ(Collect(*before).end.reason, FinishReason::kLength);
  EXPECT_EQ(most, 3);
  for (const Output& output : all) EXPECT_THAT(output.tokens, SizeIs(200));
  ExpectNothingLeft({&a_});
}

TEST_F(OutputsTest, TheyWaitForPlacesAsWell) {
  options_.max_sequences = 3;
  Start(4096, 0);
  const auto before = Submit(Several("first", 2, 60));
  const auto second = Submit(Several("second", 2, 60));
  for (const auto& stream : {before, second}) {
    for (const Output& output : CollectAll(*stream)) {
      EXPECT_THAT(output.tokens, SizeIs(60));
    }
  }
}

TEST_F(OutputsTest, MoreThanCanEverFitAreRefusedTogether) {
  const GenerationRequest request = Several("main", 3, 200);
  Start(2 * ShareInSets(request) + 1, 1);

  const std::vector<Output> all = CollectAll(*Submit(request));

  for (const Output& output : all) {
    EXPECT_EQ(output.end.reason, FinishReason::kError);
    EXPECT_THAT(output.tokens, SizeIs(0));
    EXPECT_EQ(output.end.error.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(output.end.error.message()),
                HasSubstr("3 outputs of main"));
  }
  // Nothing of it is left.
  GenerationRequest next = request;
  next.num_outputs = 2;
  for (const Output& output : CollectAll(*Submit(next))) {
    EXPECT_THAT(output.tokens, SizeIs(200));
  }
  ExpectNothingLeft({&a_});
}

TEST_F(OutputsTest, AnAbortEndsThemAllAndTheNameIsFreeWhenTheLastHasEnded) {
  absl::Notification running, go_on;
  Start(4096, 0);
  on_token_ = [&](const EngineView&, const std::string&) {
    if (running.HasBeenNotified()) return;
    running.Notify();
    go_on.WaitForNotification();
  };
  const auto stream = Submit(Several("main", 3, 5000));
  running.WaitForNotification();
  EXPECT_EQ(engine_->Submit(Several("main", 1, 5)).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(engine_->Abort("main"));
  go_on.Notify();

  for (const Output& output : CollectAll(*stream)) {
    EXPECT_EQ(output.end.reason, FinishReason::kCancelled);
  }
  EXPECT_TRUE(engine_->WaitIdle(absl::Seconds(60)));
  EXPECT_THAT(CollectAll(*Submit(Several("main", 1, 5)))[0].tokens, SizeIs(5));
}

TEST_F(OutputsTest, ANumberOutOfRangeIsRefused) {
  options_.max_sequences = 4;
  Start(4096, 0);
  const auto refusal = [this](const GenerationRequest& request) {
    const absl::Status status = engine_->Submit(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Several("main", 0, 5)),
              HasSubstr("sampling.n is 0, must lie in [1, 16]"));
  EXPECT_THAT(refusal(Several("main", 17, 5)), HasSubstr("[1, 16]"));
  EXPECT_THAT(refusal(Several("main", 5, 5)),
              HasSubstr("sampling.n is 5, must lie in [1, 4]"));
  GenerationRequest greedy = Several("main", 2, 5);
  greedy.sampling.temperature = 0;
  EXPECT_THAT(refusal(greedy), HasSubstr("sampling.n is 2, must be 1"));
}

}  // namespace
}  // namespace farkv
