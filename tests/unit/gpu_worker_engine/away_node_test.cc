// While its only node is away a running request waits for it where T0 is too
// small, or goes on in T0; a new one is admitted only where T0 can hold both.
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class AwayNodeTest : public EngineOverNodes {
 protected:
  AwayNodeTest() {
    // How soon a node that is back is found.
    options_.tiering.heartbeat = absl::Milliseconds(200);
    options_.tiering.rpc_timeout = absl::Seconds(10);
  }

  // The node goes away when rows of all `ids` are cold.
  void LoseWhenCold(std::vector<std::string> ids) {
    StrikeWhenCold(std::move(ids), [this] {
      a_.SetDown(true);
      lost_.Notify();
    });
  }

  // Behind the loss: returns when no step finds room any more.
  void AwaitFullT0() {
    ASSERT_TRUE(lost_.WaitForNotificationWithTimeout(absl::Seconds(60)));
    const absl::Time end = absl::Now() + absl::Seconds(60);
    for (uint64_t used = 0; absl::Now() < end;) {
      never_.WaitForNotificationWithTimeout(absl::Milliseconds(300));
      const EngineLoad load = engine_->Load();
      const uint64_t left = load.t0.capacity_bytes - load.t0.used_bytes;
      if (load.t0.used_bytes == used && left < 3 * kSetBytes) return;
      used = load.t0.used_bytes;
    }
    FAIL() << "T0 has room";
  }

  const uint64_t kSetBytes = static_cast<uint64_t>(kGeometry.num_layers) *
                             kGeometry.BlockBytes(kGranularity);
  absl::Notification lost_;
};

TEST_F(AwayNodeTest, ARequestWaitsForItsNodeWhereT0IsFull) {
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 1);
  LoseWhenCold({"main"});
  const auto stream = Submit(request);
  AwaitFullT0();

  a_.SetDown(false);

  // Its first session, which could not be closed, would end with its lease.
  ExpectAsAlone(Collect(*stream), request);
}

TEST_F(AwayNodeTest, ARequestWaitsForANodeThatComesBackEmpty) {
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 1);
  LoseWhenCold({"main"});
  const auto stream = Submit(request);
  AwaitFullT0();

  a_.Restart();
  a_.SetDown(false);

  ExpectAsAlone(Collect(*stream), request);
  ExpectNothingLeft({&a_});
}

TEST_F(AwayNodeTest, SeveralRequestsWaitForTheirNode) {
  const std::vector<GenerationRequest> requests = {
      Request("first", 32, 400), Request("the second", 48, 400),
      Request("number three", 40, 400)};
  int64_t sets = 2;
  for (const GenerationRequest& request : requests) {
    sets += ShareInSets(request);
  }
  Start(sets, 1);
  LoseWhenCold({"first", "the second", "number three"});
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (const GenerationRequest& request : requests) {
    streams.push_back(Submit(request));
  }
  AwaitFullT0();

  a_.Restart();
  a_.SetDown(false);

  for (size_t i = 0; i < requests.size(); ++i) {
    ExpectAsAlone(Collect(*streams[i]), requests[i]);
  }
  ExpectNothingLeft({&a_});
}

TEST_F(AwayNodeTest, ARequestWhoseNodeStaysAwayEndsAndNamesIt) {
  options_.tiering.rpc_timeout = absl::Milliseconds(200);
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 1);
  LoseWhenCold({"main"});

  const Output run = Collect(*Submit(request));

  EXPECT_EQ(run.end.reason, FinishReason::kError);
  EXPECT_EQ(run.end.error.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(run.end.error.message()),
              HasSubstr("memory node a (0) is lost"));
}

// T0 holds the running one whole, and a little more.
TEST_F(AwayNodeTest, ANewRequestTakesNothingThatARunningOneWillNeed) {
  options_.tiering.rpc_timeout = absl::Milliseconds(200);
  const GenerationRequest running = Request("main", 32, 600);
  const GenerationRequest late = Request("late", 32, 900);
  Start((32 + 600) / kGranularity + 8, 1);
  std::shared_ptr<GenerationStream> second;
  StrikeWhenCold({"main"}, [&, this] {
    a_.SetDown(true);
    while (engine_->Peers()[0].healthy) {
    }
    second = Submit(late);
    lost_.Notify();
  });

  const auto first = Submit(running);
  ASSERT_TRUE(lost_.WaitForNotificationWithTimeout(absl::Seconds(60)));

  ExpectAsAlone(Collect(*first), running);
  const Output run = Collect(*second);
  EXPECT_EQ(run.end.error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(run.end.error.message()),
              HasSubstr("memory node a (0) is lost"));
  EXPECT_EQ(run.end.completion_tokens, 0);
}

// T0 holds either of them whole, not both.
TEST_F(AwayNodeTest, OfTwoThatRunTheYoungerMakesRoomAndIsComputedAgain) {
  options_.tiering.rpc_timeout = absl::Milliseconds(200);
  const GenerationRequest older = Request("older", 32, 600);
  const GenerationRequest younger = Request("the younger", 32, 600);
  Start((32 + 600) / kGranularity + 8, 1);
  LoseWhenCold({"older", "the younger"});

  const auto first = Submit(older);
  const auto second = Submit(younger);

  ExpectAsAlone(Collect(*first), older);
  ExpectAsAlone(Collect(*second), younger);
  EXPECT_GT(Recoveries(), 2);
}

TEST_F(AwayNodeTest, ANewRequestWaitsForTheNodeThatItNeeds) {
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 1);
  a_.SetDown(true);
  while (engine_->Peers()[0].healthy) {
  }
  const auto stream = Submit(request);
  never_.WaitForNotificationWithTimeout(absl::Milliseconds(300));
  EXPECT_EQ(engine_->Load().waiting, 1);

  a_.SetDown(false);

  ExpectAsAlone(Collect(*stream), request);
  ExpectNothingLeft({&a_});
}

}  // namespace
}  // namespace farkv
