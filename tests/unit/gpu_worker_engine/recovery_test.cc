// Rows that a node has lost, or damages, are computed again from the tokens:
// no request fails, and tokens and logits have the bits of a run without nodes
// (DESIGN P5). Nodes are those of the tiering tests.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

class RecoveryTest : public EngineOverNodes {};

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
  // First the page that was damaged is stored on the other one, then all are.
  EXPECT_THAT(Recoveries(), AllOf(Ge(1), Le(2)));
  ExpectNothingLeft({&a_, &b_});
}

TEST_F(RecoveryTest, ANodeThatRefusesFetchesForLongCostsNoRequest) {
  const GenerationRequest request = Request("main", 32, 600);
  options_.tiering.fetch_timeout = absl::Milliseconds(500);
  Start(ShareInSets(request) + 2, 2);
  std::atomic<TestNode*> refusing{nullptr};  // the first that is asked
  for (TestNode* node : {&a_, &b_}) {
    node->EditFetches([&refusing, node](FetchReply&, std::vector<std::byte>&) {
      TestNode* none = nullptr;
      if (!refusing.compare_exchange_strong(none, node)) return;
      node->RefuseFetches(true);
    });
  }

  const Output run = Collect(*Submit(request));

  for (TestNode* node : {&a_, &b_}) node->EditFetches(nullptr);
  ExpectAsAlone(run, request);
  EXPECT_GE(Recoveries(), 1);
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
  size_t logged = 0;
  absl::Notification told;
  ASSERT_TRUE(engine_
                  ->Ask([&](const EngineView& view) {
                    logged =
                        view.Decisions({.count = 1000, .sessions = {}}).size();
                    told.Notify();
                  })
                  .ok());
  told.WaitForNotification();

  ExpectAsAlone(run, request);
  const GenerationEnd alone = Alone(request).end;
  EXPECT_GT(run.end.tiers.recomputed_tokens, 0);
  EXPECT_EQ(run.end.tiers.evictions_digest, alone.tiers.evictions_digest);
  EXPECT_EQ(run.end.tiers.destroyed_rows, alone.tiers.destroyed_rows);
  // The log has each of them once.
  EXPECT_EQ(logged, static_cast<size_t>(run.end.tiers.evictions));
}

}  // namespace
}  // namespace farkv
