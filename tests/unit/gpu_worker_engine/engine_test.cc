// What the engine does when T0 or a node gives out: who waits, who ends, and
// that nobody's tokens change. Nodes are those of the tiering tests.
#include "gpu_worker/engine/engine.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gpu_worker/tiering/admission.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_tiering/test_node.h"

namespace farkv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr int kGranularity = 16;
constexpr int64_t kPrompt = 32;
constexpr KvGeometry kGeometry = {
    .num_layers = 4, .num_kv_heads = 2, .head_dim = 64, .dtype = DType::kBf16};

struct Output {
  std::vector<int32_t> tokens;
  GenerationEnd end;
};

class EngineTest : public ::testing::Test {
 protected:
  // An engine that a failed test left in its sink must come out.
  ~EngineTest() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
  }

  EngineTest() {
    options_.model =
        std::string(getenv("FARKV_TEST_SOURCE_DIR")) + "/models/reasoner";
    options_.threads = 1;
    options_.placement.granularity = kGranularity;
    options_.placement.interval = 16;
    options_.placement.recent = 32;
    options_.placement.hbm_ratio = 0;
    options_.tiering.granularity = kGranularity;
    options_.tiering.t0_bytes = uint64_t{64} << 20;
    // A busy machine may keep a node from answering for a while.
    options_.tiering.heartbeat = absl::Seconds(5);
    options_.tiering.rpc_timeout = kLong;
  }

  int64_t ShareInSets(int64_t new_tokens) const {
    SequenceSpec spec;
    spec.prompt_tokens = kPrompt;
    spec.max_tokens = kPrompt + new_tokens;
    spec.placement = options_.placement;
    return farkv::ShareInSets(spec, /*has_nodes=*/true);
  }

  // T0 of so many sets of lines over the node.
  void Start(int64_t sets) {
    options_.tiering.t0_bytes = static_cast<uint64_t>(sets) *
                                static_cast<uint64_t>(kGeometry.num_layers) *
                                kGeometry.BlockBytes(kGranularity);
    options_.tiering.memory_nodes = {"0"};
    auto engine = Engine::CreateWith(options_, AccessTo(network_, {&node_}));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  static GenerationRequest Request(const std::string& id, uint64_t seed,
                                   int64_t new_tokens) {
    GenerationRequest request;
    request.request_id = id;
    for (uint64_t i = 0; i < kPrompt; ++i) {
      request.prompt.push_back(
          static_cast<int32_t>(CounterDraw(seed, {i}) % 60));
    }
    request.max_new_tokens = new_tokens;
    request.ignore_eos = true;
    return request;
  }

  std::shared_ptr<GenerationStream> Submit(const std::string& id, uint64_t seed,
                                           int64_t new_tokens) {
    return engine_->Submit(Request(id, seed, new_tokens)).value();
  }

  static Output Collect(GenerationStream& stream) {
    Output run;
    for (;;) {
      GenerationEvent event = stream.WaitAndTake();
      run.tokens.insert(run.tokens.end(), event.tokens.begin(),
                        event.tokens.end());
      if (!event.end.has_value()) continue;
      run.end = *std::move(event.end);
      return run;
    }
  }

  // The tokens of a request in an engine of its own, without nodes.
  std::vector<int32_t> TokensAlone(uint64_t seed, int64_t new_tokens) const {
    EngineOptions options = options_;
    options.tiering.memory_nodes.clear();
    options.tiering.t0_bytes = uint64_t{256} << 20;
    const auto engine = Engine::Create(std::move(options)).value();
    const auto stream =
        engine->Submit(Request("alone", seed, new_tokens)).value();
    return Collect(*stream).tokens;
  }

  std::vector<SequenceInfo> Sequences() const {
    std::vector<SequenceInfo> sequences;
    absl::Notification answered;
    const absl::Status asked = engine_->Ask([&](const EngineView& engine) {
      sequences = engine.Sequences();
      answered.Notify();
    });
    EXPECT_TRUE(asked.ok()) << asked;
    if (asked.ok()) answered.WaitForNotification();
    return sequences;
  }

  // Asks until `reached` holds for the sequence of a request.
  template <typename Predicate>
  bool WaitFor(const std::string& id, Predicate reached) const {
    const absl::Time end = absl::Now() + kLong;
    while (absl::Now() < end) {
      for (const SequenceInfo& info : Sequences()) {
        if (info.request_id == id && reached(info)) return true;
      }
    }
    return false;
  }

  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode node_{network_, kGeometry, "node"};
  EngineOptions options_;
  absl::Notification go_on_;  // for a sink that waits
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, AFreeTokenAmongForcedOnesIsChosenAndTheRestIsForced) {
  EngineOptions options = options_;
  const auto engine = Engine::Create(std::move(options)).value();
  GenerationRequest request = Request("free", 1, 4);
  request.forced = {7, kFreeToken, 9};
  const Output first = Collect(*engine->Submit(request).value());
  ASSERT_THAT(first.tokens, ::testing::SizeIs(4));
  EXPECT_EQ(first.tokens[0], 7);
  EXPECT_EQ(first.tokens[2], 9);
  // What was chosen, forced, changes nothing behind it.
  request.forced[1] = first.tokens[1];
  EXPECT_EQ(Collect(*engine->Submit(request).value()).tokens, first.tokens);
  request.forced[1] = kFreeToken - 1;
  EXPECT_THAT(std::string(engine->Submit(request).status().message()),
              HasSubstr("forced_tokens[1] is token -2"));
}

TEST_F(EngineTest, AStopTokenEndsARequestButNotBeforeItsLeastTokens) {
  EngineOptions options = options_;
  const auto engine = Engine::Create(std::move(options)).value();
  GenerationRequest request = Request("stop", 1, 12);
  const auto all = Collect(*engine->Submit(request).value()).tokens;
  ASSERT_THAT(all, ::testing::SizeIs(12));
  request.stop_tokens = {all[5]};
  const Output stopped = Collect(*engine->Submit(request).value());
  const auto first = std::find(all.begin(), all.end(), all[5]) - all.begin();
  EXPECT_THAT(stopped.tokens, ::testing::SizeIs(first + 1));
  EXPECT_EQ(stopped.end.reason, FinishReason::kStop);
  EXPECT_EQ(stopped.end.stop_token, all[5]);

  // The first tokens are forced, so that the next one is the same.
  request.forced.assign(all.begin(), all.begin() + 5);
  request.min_new_tokens = 5;
  const Output at_once = Collect(*engine->Submit(request).value());
  EXPECT_THAT(at_once.tokens, ::testing::SizeIs(6));
  EXPECT_EQ(at_once.end.stop_token, all[5]);
  request.min_new_tokens = 6;
  const Output later = Collect(*engine->Submit(request).value());
  EXPECT_GT(later.tokens.size(), 6u);
  EXPECT_NE(later.tokens[5], all[5]);
}

TEST_F(EngineTest, AParkedSequenceRunsAgainWhileTheOldestGoesOn) {
  // Behind the youngest's last token the oldest waits to be looked at. The
  // engine of TokensAlone has the same sink, and requests of other names.
  int of_youngest = 0;
  options_.logit_sink = [&, this](const std::string& id, int64_t,
                                  std::span<const float>) {
    if (id == "youngest") ++of_youngest;
    if (id == "oldest" && of_youngest == 300) go_on_.WaitForNotification();
  };
  Start(ShareInSets(4000) + ShareInSets(300) + 2);
  node_.RefuseStores(1 << 20);
  const auto oldest = Submit("oldest", 1, 4000);
  const auto youngest = Submit("youngest", 2, 300);
  ASSERT_TRUE(WaitFor("youngest", [](const SequenceInfo& info) {
    return info.state == "parked";
  }));

  node_.RefuseStores(0);

  const Output run = Collect(*youngest);
  EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
  EXPECT_EQ(run.tokens, TokensAlone(2, 300));
  EXPECT_TRUE(engine_->Abort("oldest"));
  go_on_.Notify();
  EXPECT_EQ(Collect(*oldest).end.reason, FinishReason::kCancelled);
  engine_ = nullptr;  // before what its sink refers to
}

TEST_F(EngineTest, ARequestThatNobodyCanMakeRoomForEndsAndSaysWhy) {
  options_.tiering.rpc_timeout = absl::Seconds(1);
  Start(ShareInSets(1000) + 2);
  node_.RefuseStores(1 << 20);

  const Output run = Collect(*Submit("alone", 1, 1000));

  EXPECT_EQ(run.end.reason, FinishReason::kError);
  EXPECT_EQ(run.end.error.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(run.end.error.message()), HasSubstr("T0 is full"));
  EXPECT_GT(run.tokens.size(), 100u);
}

TEST_F(EngineTest, ACancelIsServedWhileAStepWaitsForRoom) {
  const int64_t sets = ShareInSets(1000) + 2;
  Start(sets);
  node_.RefuseStores(1 << 20);
  const auto stream = Submit("alone", 1, 1000);
  // Every line is in use; the token chosen last needs the next one.
  ASSERT_TRUE(WaitFor("alone", [sets](const SequenceInfo& info) {
    return kPrompt + info.generated_tokens - 1 == sets * kGranularity;
  }));

  EXPECT_TRUE(engine_->Abort("alone"));

  EXPECT_TRUE(engine_->WaitIdle(kLong / 2));
  EXPECT_EQ(Collect(*stream).end.reason, FinishReason::kCancelled);
}

TEST_F(EngineTest, ADeadlineEndsWhoRunsAndWhoWaits) {
  const absl::Time deadline = absl::Now() + absl::Seconds(1);
  options_.max_sequences = 1;
  // Fast or slow, the deadline comes before the end.
  options_.logit_sink = [this, deadline](const std::string&, int64_t,
                                         std::span<const float>) {
    go_on_.WaitForNotificationWithDeadline(deadline);
  };
  Start(1024);
  GenerationRequest running = Request("running", 1, 8000);
  running.deadline = deadline;
  GenerationRequest waiting = Request("waiting", 2, 8000);
  waiting.deadline = running.deadline;
  const auto first = engine_->Submit(std::move(running)).value();
  const auto second = engine_->Submit(std::move(waiting)).value();

  const Output run = Collect(*first);
  EXPECT_EQ(run.end.reason, FinishReason::kDeadline);
  EXPECT_LT(run.tokens.size(), 8000u);
  const Output wait = Collect(*second);
  EXPECT_EQ(wait.end.reason, FinishReason::kDeadline);
  EXPECT_TRUE(wait.tokens.empty());
  EXPECT_TRUE(engine_->WaitIdle(kLong));
}

// Whoever asks for figures must neither wait for a step nor take the engine
// for idle because it does not answer.
TEST_F(EngineTest, AnEngineInAStepTellsItsLoadAndThatItIsNotDrained) {
  absl::Notification in_step, go_on;
  options_.logit_sink = [&](const std::string&, int64_t,
                            std::span<const float>) {
    if (!in_step.HasBeenNotified()) in_step.Notify();
    go_on.WaitForNotification();
  };
  Start(1024);
  const auto stream = Submit("busy", 1, 3);
  in_step.WaitForNotification();

  const EngineLoad load = engine_->Load();
  EXPECT_EQ(load.running, 1);
  EXPECT_GT(load.t0.capacity_bytes, 0u);
  EXPECT_EQ(engine_->Peers().size(), 1u);
  absl::Notification drained;
  std::vector<int> left;
  engine_->SetDraining(true);
  const auto watch = engine_->WatchLeft([&](RequestQueue::Left now) {
    left.push_back(now.requests);
    if (now.requests == 0) drained.Notify();
  });
  ASSERT_TRUE(watch.ok());
  EXPECT_THAT(left, ElementsAre(1));

  go_on.Notify();
  EXPECT_TRUE(drained.WaitForNotificationWithTimeout(kLong));
  engine_->Unwatch(*watch);
  EXPECT_EQ(Collect(*stream).end.reason, FinishReason::kLength);
  engine_->Stop();
  EXPECT_EQ(engine_->Ask([](const EngineView&) {}).code(),
            absl::StatusCode::kUnavailable);
}

// More requests than may run or fit, a queue that fills up, and stores that
// fail now and then.
TEST_F(EngineTest, CrowdsOverAScarceT0ChangeNobodysTokens) {
  constexpr int kRequests = 8;
  constexpr int64_t kTokens = 200;
  options_.max_sequences = 4;
  options_.max_queue = kRequests;
  options_.await_stores_every = 16;  // cold rows, however busy the node
  Start(3 * ShareInSets(kTokens));
  node_.RefuseStores(20);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (int i = 0; i < kRequests; ++i) {
    streams.push_back(
        Submit(std::to_string(i), static_cast<uint64_t>(i) + 10, kTokens));
  }

  int64_t fetched = 0;
  for (int i = 0; i < kRequests; ++i) {
    const Output run = Collect(*streams[static_cast<size_t>(i)]);
    EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
    fetched += run.end.tiers.cold_rows_fetched;
    EXPECT_EQ(run.tokens, TokensAlone(static_cast<uint64_t>(i) + 10, kTokens));
  }
  EXPECT_GT(fetched, 0);
}

}  // namespace
}  // namespace farkv
