// Rows that a node has lost, or damages, are computed again from the tokens:
// no request fails, and tokens and logits have the bits of a run without nodes
// (DESIGN P5). Nodes are those of the tiering tests.
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gpu_worker/tiering/admission.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_tiering/test_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr int kGranularity = 16;
constexpr KvGeometry kGeometry = {
    .num_layers = 4, .num_kv_heads = 2, .head_dim = 64, .dtype = DType::kBf16};

struct Output {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> logits;  // CRC32C of each row that chose a token
  GenerationEnd end;
};

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    options_.model =
        std::string(getenv("FARKV_TEST_SOURCE_DIR")) + "/models/reasoner";
    options_.threads = 1;
    options_.placement.granularity = kGranularity;
    options_.placement.interval = 16;
    options_.placement.recent = 32;
    options_.placement.hbm_ratio = 0;
    options_.tiering.granularity = kGranularity;
    options_.tiering.heartbeat = absl::Seconds(5);
    options_.tiering.rpc_timeout = absl::Seconds(60);
  }

  // Before what its sinks refer to.
  ~RecoveryTest() override { engine_ = nullptr; }

  static GenerationRequest Request(const std::string& id, int64_t prompt,
                                   int64_t new_tokens) {
    GenerationRequest request;
    request.request_id = id;
    const uint64_t seed = id.size();
    for (int64_t i = 0; i < prompt; ++i) {
      const auto draw = CounterDraw(seed, {static_cast<uint64_t>(i)});
      request.prompt.push_back(static_cast<int32_t>(draw % 60));
    }
    request.max_new_tokens = new_tokens;
    request.ignore_eos = true;
    return request;
  }

  int64_t ShareInSets(const GenerationRequest& request) const {
    SequenceSpec spec;
    spec.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    spec.max_tokens = spec.prompt_tokens + request.max_new_tokens;
    spec.placement = options_.placement;
    if (request.hbm_ratio) spec.placement.hbm_ratio = *request.hbm_ratio;
    return farkv::ShareInSets(spec, /*has_nodes=*/true);
  }

  // T0 of so many sets of lines over the first `num_nodes` nodes.
  void Start(int64_t sets, int num_nodes) {
    EngineOptions options = WithLogits();
    options.cache_sink = [this](const EngineView& engine, const std::string& id,
                                int64_t) {
      if (on_token_) on_token_(engine, id);
    };
    options.metrics = &metrics_;
    options.tiering.t0_bytes = static_cast<uint64_t>(sets) *
                               static_cast<uint64_t>(kGeometry.num_layers) *
                               kGeometry.BlockBytes(kGranularity);
    std::vector<TestNode*> nodes = {&a_, &b_};
    nodes.resize(static_cast<size_t>(num_nodes));
    for (int i = 0; i < num_nodes; ++i) {
      options.tiering.memory_nodes.push_back(std::to_string(i));
    }
    auto engine = Engine::CreateWith(options, AccessTo(network_, nodes));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  EngineOptions WithLogits() {
    EngineOptions options = options_;
    options.logit_sink = [this](const std::string& id, int64_t,
                                std::span<const float> logits) {
      absl::MutexLock lock(&mutex_);
      logits_[id].push_back(Crc32c(std::as_bytes(logits)));
    };
    return options;
  }

  std::shared_ptr<GenerationStream> Submit(GenerationRequest request) {
    return engine_->Submit(std::move(request)).value();
  }

  Output Collect(GenerationStream& stream) {
    Output run;
    for (;;) {
      GenerationEvent event = stream.WaitAndTake();
      run.tokens.insert(run.tokens.end(), event.tokens.begin(),
                        event.tokens.end());
      if (!event.end.has_value()) continue;
      run.end = *std::move(event.end);
      absl::MutexLock lock(&mutex_);
      run.logits = std::exchange(logits_[stream.request_id()], {});
      return run;
    }
  }

  // The request in an engine of its own, without nodes.
  Output Alone(GenerationRequest request) {
    EngineOptions options = WithLogits();
    options.tiering.t0_bytes = uint64_t{256} << 20;
    const auto engine = Engine::Create(std::move(options)).value();
    return Collect(*engine->Submit(std::move(request)).value());
  }

  // It has ended as if no row had ever been lost.
  void ExpectAsAlone(const Output& run, const GenerationRequest& request) {
    EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
    const Output alone = Alone(request);
    EXPECT_EQ(run.tokens, alone.tokens);
    EXPECT_EQ(run.logits, alone.logits);
  }

  static SequenceInfo InfoOf(const EngineView& engine, const std::string& id) {
    for (SequenceInfo& info : engine.Sequences()) {
      if (info.request_id == id) return std::move(info);
    }
    return {};
  }

  // Calls `strike` once, on the engine's thread between two steps, when rows
  // of all `ids` are cold. Until then tokens are so slow that stores keep up.
  void StrikeWhenCold(std::vector<std::string> ids,
                      std::function<void()> strike) {
    on_token_ = [=, this, struck = false](const EngineView& engine,
                                          const std::string&) mutable {
      if (struck) return;
      for (const std::string& id : ids) {
        const SequenceTierStats tiers = InfoOf(engine, id).tiers;
        if (tiers.t1_tokens > 0) continue;
        if (tiers.t0_tokens > 96) {  // a page may leave
          never_.WaitForNotificationWithTimeout(absl::Milliseconds(5));
        }
        return;
      }
      struck = true;
      strike();
    };
  }

  // Calls `act` once, on the engine's thread, while `id` is recomputed.
  void WhileRecomputed(const std::string& id, std::function<void()> act) {
    on_token_ = [=, strike = std::move(on_token_), acted = false](
                    const EngineView& engine, const std::string& of) mutable {
      strike(engine, of);
      if (acted || InfoOf(engine, id).state != "recompute") return;
      acted = true;
      act();
    };
  }

  TestNode& Holder() { return a_.stored_pages() > 0 ? a_ : b_; }

  int Recoveries() const {
    const std::string text = metrics_.Render();
    const std::string name = "\nfarkv_worker_recoveries_total ";
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : atoi(&text[at + name.size()]);
  }

  // Ends the engine; what it had on nodes that are up must be free.
  void ExpectNothingLeft(std::vector<const TestNode*> nodes) {
    engine_ = nullptr;
    for (const TestNode* node : nodes) EXPECT_EQ(node->used_pages(), 0);
  }

  Metrics metrics_;
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode a_{network_, kGeometry, "a"}, b_{network_, kGeometry, "b"};
  EngineOptions options_;
  absl::Notification never_;
  std::function<void(const EngineView&, const std::string&)> on_token_;
  absl::Mutex mutex_;
  std::map<std::string, std::vector<uint32_t>> logits_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Engine> engine_;
};

TEST_F(RecoveryTest, RowsOfALostNodeAreRecomputedAndGoToTheOther) {
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 2);
  TestNode* lost = nullptr;
  StrikeWhenCold({"main"}, [&] {
    lost = &Holder();
    lost->SetDown(true);
  });

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  ASSERT_NE(lost, nullptr);
  const TestNode& other = lost == &a_ ? b_ : a_;
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  EXPECT_GT(run.end.tiers.cold_rows_by_node.at(other.id()), 0);
  EXPECT_EQ(Recoveries(), 1);
  ExpectNothingLeft({&other});
}

TEST_F(RecoveryTest, ANodeThatForgotItsSessionsIsUsedAgain) {
  GenerationRequest request = Request("main", 32, 600);
  request.sampling.temperature = 0.8f;
  request.sampling.seed = 7;
  request.forced = {3, 4, kFreeToken, 5};
  Start(ShareInSets(request) + 2, 1);
  StrikeWhenCold({"main"}, [this] { a_.Restart(); });

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  EXPECT_EQ(run.end.prompt_tokens, 32);
  EXPECT_EQ(run.end.completion_tokens, 600);
  ExpectNothingLeft({&a_});
}

TEST_F(RecoveryTest, WithoutANodeARequestGoesOnInT0AndOthersAreLeftAlone) {
  const GenerationRequest request = Request("main", 32, 1000);
  const GenerationRequest other = Request("other", 32, 20);
  Start(1024, 1);
  std::shared_ptr<GenerationStream> warm;
  absl::Notification lost;
  StrikeWhenCold({"main"}, [&, this] {
    a_.SetDown(true);
    warm = Submit(other);
    lost.Notify();
  });
  const auto cold = Submit(request);
  ASSERT_TRUE(lost.WaitForNotificationWithTimeout(absl::Seconds(60)));

  const Output run = Collect(*warm);
  ExpectAsAlone(run, other);
  EXPECT_EQ(run.end.tiers.recomputed_tokens, 0);
  const Output recovered = Collect(*cold);
  ExpectAsAlone(recovered, request);
  EXPECT_GT(recovered.end.tiers.recomputed_tokens, 0);
}

TEST_F(RecoveryTest, TwoSequencesOfALostNodeAreRecomputedSideBySide) {
  const GenerationRequest first = Request("first", 32, 600);
  const GenerationRequest second = Request("the second", 48, 500);
  Start(ShareInSets(first) + ShareInSets(second) + 2, 1);
  StrikeWhenCold({"first", "the second"}, [this] { a_.Restart(); });

  const auto one = Submit(first);
  const auto two = Submit(second);

  for (const auto& [stream, request] : {std::pair(one, first), {two, second}}) {
    const Output run = Collect(*stream);
    ExpectAsAlone(run, request);
    EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  }
  ExpectNothingLeft({&a_});
}

TEST_F(RecoveryTest, RowsLostInThePromptAndAgainInTheReplayCostNoBit) {
  options_.placement.prompt_in_t0 = false;
  options_.prefill_chunk = 32;
  const GenerationRequest request = Request("main", 600, 50);
  // The first page arrives damaged in its first two lives, however often it is
  // asked for.
  std::set<uint64_t> damaged;
  a_.EditFetches([&](FetchReply& reply, std::vector<std::byte>& rows) {
    for (const FetchReplyItem& item : reply.items) {
      if (item.page_index != 0 || rows.empty()) continue;
      if (damaged.size() < 2) damaged.insert(item.generation.value);
      if (damaged.contains(item.generation.value)) rows[0] ^= std::byte{1};
    }
  });
  Start(ShareInSets(request) + 2, 1);

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  EXPECT_GE(Recoveries(), 2);
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  EXPECT_EQ(run.end.prompt_tokens, 600);
  ExpectNothingLeft({&a_});
}

TEST_F(RecoveryTest, ANodeThatDamagesRowsIsLeftForAnother) {
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 2);
  std::atomic<TestNode*> bad{nullptr};  // the first that is asked
  for (TestNode* node : {&a_, &b_}) {
    node->EditFetches([&bad, node](FetchReply&, std::vector<std::byte>& rows) {
      TestNode* none = nullptr;
      bad.compare_exchange_strong(none, node);
      if (bad == node && !rows.empty()) rows[0] ^= std::byte{1};
    });
  }

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  EXPECT_EQ(Recoveries(), 1);
  ExpectNothingLeft({&a_, &b_});
}

TEST_F(RecoveryTest, ANodeThatIsNotTrustedIsBetterThanNone) {
  const GenerationRequest request = Request("main", 32, 600);
  options_.tiering.spread = true;
  options_.tiering.stripe_tokens = 128;
  Start(ShareInSets(request) + 2, 2);
  std::atomic<TestNode*> bad{nullptr};  // the first that is asked
  std::atomic<bool> mended{false};
  for (TestNode* node : {&a_, &b_}) {
    node->EditFetches(
        [&bad, &mended, node](FetchReply&, std::vector<std::byte>& rows) {
          TestNode* none = nullptr;
          bad.compare_exchange_strong(none, node);
          if (bad == node && !mended && !rows.empty()) rows[0] ^= std::byte{1};
        });
  }
  // After the recovery its rows are on the other one, which goes away.
  on_token_ = [&, this](const EngineView& engine, const std::string& id) {
    if (mended || Recoveries() == 0) return;
    const SequenceTierStats tiers = InfoOf(engine, id).tiers;
    if (tiers.t1_tokens > 0) {
      mended = true;
      (bad == &a_ ? b_ : a_).SetDown(true);
    } else if (tiers.t0_tokens > 96) {
      never_.WaitForNotificationWithTimeout(absl::Milliseconds(5));
    }
  };

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  ASSERT_TRUE(mended);
  EXPECT_EQ(Recoveries(), 2);
  EXPECT_GT(run.end.tiers.cold_rows_by_node.at(bad.load()->id()), 0);
}

TEST_F(RecoveryTest, ANodeThatDamagesEverythingEndsTheRequestSomeTime) {
  const GenerationRequest request = Request("main", 32, 600);
  Start(ShareInSets(request) + 2, 1);
  a_.EditFetches([](FetchReply&, std::vector<std::byte>& rows) {
    if (!rows.empty()) rows[0] ^= std::byte{1};
  });

  const Output run = Collect(*Submit(request));

  EXPECT_EQ(run.end.reason, FinishReason::kError);
  EXPECT_EQ(run.end.error.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(run.end.error.message()),
              HasSubstr("recomputed 8 times"));
  Output alone = Alone(request);
  ASSERT_LT(run.tokens.size(), alone.tokens.size());
  alone.tokens.resize(run.tokens.size());
  EXPECT_EQ(run.tokens, alone.tokens);
  ExpectNothingLeft({&a_});
}

// Company whose rows all stay in T0, so that it has tokens meanwhile.
class EndInReplayTest : public RecoveryTest {
 protected:
  void StartBoth(absl::Time deadline) {
    main_.deadline = deadline;
    company_.hbm_ratio = 10000;
    Start(ShareInSets(main_) + ShareInSets(company_) + 2, 1);
    StrikeWhenCold({"main"}, [this] { a_.SetDown(true); });
  }

  // Submits both; how `main` has ended.
  Output Run() {
    const auto stream = Submit(main_);
    const auto company = Submit(company_);
    Output run = Collect(*stream);
    ExpectAsAlone(Collect(*company), company_);
    return run;
  }

  GenerationRequest main_ = Request("main", 32, 800);
  GenerationRequest company_ = Request("company", 32, 1000);
};

TEST_F(EndInReplayTest, ACancelEndsARequestThatIsRecomputed) {
  StartBoth(absl::InfiniteFuture());
  WhileRecomputed("main", [this] { EXPECT_TRUE(engine_->Abort("main")); });

  const Output run = Run();

  EXPECT_EQ(run.end.reason, FinishReason::kCancelled);
  EXPECT_GT(run.tokens.size(), 0u);
}

TEST_F(EndInReplayTest, ADeadlineEndsARequestThatIsRecomputed) {
  const absl::Time deadline = absl::Now() + absl::Seconds(3);
  StartBoth(deadline);
  WhileRecomputed(
      "main", [&, this] { never_.WaitForNotificationWithDeadline(deadline); });

  const Output run = Run();

  EXPECT_EQ(run.end.reason, FinishReason::kDeadline);
  EXPECT_LT(run.tokens.size(), 800u);
}

TEST_F(RecoveryTest, EventsThatDestroyedRowsTakePlaceAgainAsTheyDid) {
  options_.placement.prompt_in_t0 = false;
  GenerationRequest request = Request("main", 32, 260);
  DestructionSettings settings;
  settings.policy = **ParseDestructionPolicy("vase-attn-v");
  settings.budget.kind = BudgetKind::kFixed;
  settings.budget.tokens = 128;
  request.destruction = settings;
  Start(14, 1);
  StrikeWhenCold({"main"}, [this] { a_.Restart(); });

  const Output run = Collect(*Submit(request));

  ExpectAsAlone(run, request);
  const GenerationEnd alone = Alone(request).end;
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  EXPECT_EQ(run.end.tiers.evictions_digest, alone.tiers.evictions_digest);
  EXPECT_EQ(run.end.tiers.destroyed_rows, alone.tiers.destroyed_rows);
}

}  // namespace
}  // namespace farkv
