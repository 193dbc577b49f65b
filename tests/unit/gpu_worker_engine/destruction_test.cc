// Policies that destroy rows, as requests ask the engine for them: the built-in
// reasoner, with all rows in T0 and with most of them on a node.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/random.h"
#include "common/telemetry/metrics.h"
#include "gmock/gmock.h"
#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_tiering/test_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPrompt = 32;
constexpr int64_t kTokens = 260;
constexpr KvGeometry kSmallGeometry = {
    .num_layers = 4, .num_kv_heads = 2, .head_dim = 64, .dtype = DType::kBf16};

DestructionSettings Fixed(const char* policy, int64_t tokens) {
  DestructionSettings settings;
  settings.policy = **ParseDestructionPolicy(policy);
  settings.budget.kind = BudgetKind::kFixed;
  settings.budget.tokens = tokens;
  return settings;
}

class EngineDestructionTest : public ::testing::Test {
 protected:
  EngineDestructionTest() {
    options_.model =
        std::string(getenv("FARKV_TEST_SOURCE_DIR")) + "/models/reasoner";
    options_.threads = 1;
    options_.placement.granularity = 16;
    options_.placement.interval = 16;
    options_.placement.recent = 32;
    options_.placement.hbm_ratio = 0;
    options_.placement.prompt_in_t0 = false;
    options_.tiering.granularity = 16;
    options_.tiering.heartbeat = absl::Seconds(5);
  }

  void Start(bool with_node) {
    options_.tiering.memory_nodes.clear();
    options_.tiering.t0_bytes = uint64_t{64} << 20;
    if (with_node) {
      options_.tiering.memory_nodes = {"0"};
      // So little T0 that stores are waited for, and rows are cold.
      options_.tiering.t0_bytes = uint64_t{14} * kSmallGeometry.num_layers *
                                  kSmallGeometry.BlockBytes(16);
    }
    auto engine = Engine::CreateWith(options_, AccessTo(network_, {&node_}));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  static GenerationRequest Request(const std::string& id) {
    GenerationRequest request;
    request.request_id = id;
    for (uint64_t i = 0; i < kPrompt; ++i) {
      request.prompt.push_back(static_cast<int32_t>(CounterDraw(1, {i}) % 60));
    }
    request.max_new_tokens = kTokens;
    request.ignore_eos = true;
    return request;
  }

  struct Output {
    std::vector<int32_t> tokens;
    GenerationEnd end;
  };
  Output Run(GenerationRequest request) {
    const auto stream = engine_->Submit(std::move(request)).value();
    Output run;
    for (;;) {
      GenerationEvent event = stream->WaitAndTake();
      run.tokens.insert(run.tokens.end(), event.tokens.begin(),
                        event.tokens.end());
      if (!event.end.has_value()) continue;
      run.end = *std::move(event.end);
      EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
      return run;
    }
  }

  // Of requests that run from now on, one row per token.
  void KeepLogits() {
    options_.logit_sink = [this](const std::string&, int64_t,
                                 std::span<const float> row) {
      logits_.emplace_back(row.begin(), row.end());
    };
  }
  std::vector<std::vector<float>> TakeLogits() {
    engine_ = nullptr;  // its thread writes them
    return std::exchange(logits_, {});
  }

  std::vector<std::vector<float>> logits_;
  EngineOptions options_;
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode node_{network_, kSmallGeometry, "node0"};
  std::unique_ptr<Engine> engine_;
};

// 451 tokens are cached in the end, 419 of them generated.
TEST_F(EngineDestructionTest, AnEventDestroysAWholeBufferWhateverTheBudget) {
  Start(/*with_node=*/false);
  GenerationRequest request = Request("r");
  request.max_new_tokens = 420;
  for (const char* policy : {"vase-attn-v", "vase-dkv"}) {
    for (const int64_t tokens : {255, 256, 257}) {
      request.destruction = Fixed(policy, tokens);
      const SequenceTierStats tiers = Run(request).end.tiers;
      EXPECT_EQ(tiers.evictions, 3) << policy << " " << tokens;
      EXPECT_EQ(tiers.destroyed_rows, 3 * 64 * 8) << policy << " " << tokens;
    }
    request.destruction->budget = {
        .kind = BudgetKind::kProportional, .ratio = 5000, .bounds = {}};
    // At 132, 255 and 383 generated tokens.
    const SequenceTierStats tiers = Run(request).end.tiers;
    EXPECT_EQ(tiers.evictions, 3) << policy;
    EXPECT_EQ(tiers.destroyed_rows, 3 * 64 * 8) << policy;
  }
}

TEST_F(EngineDestructionTest, TokensAndDecisionsDoNotDependOnTheNode) {
  for (const char* policy : {"vase-attn-v", "h2o"}) {
    GenerationRequest request = Request("r");
    request.destruction = Fixed(policy, 128);
    Start(/*with_node=*/false);
    const Output full = Run(request);
    Start(/*with_node=*/true);
    const Output cold = Run(request);

    EXPECT_EQ(cold.tokens, full.tokens) << policy;
    EXPECT_GT(full.end.tiers.destroyed_rows, 0) << policy;
    EXPECT_EQ(cold.end.tiers.evictions_digest, full.end.tiers.evictions_digest)
        << policy;
    EXPECT_GT(cold.end.tiers.cold_rows_fetched, 0) << policy;
  }
}

TEST_F(EngineDestructionTest, SelectedRowsDoNotDependOnTheNode) {
  KeepLogits();
  GenerationRequest request = Request("r");
  Start(/*with_node=*/false);
  Run(request);
  const auto dense = TakeLogits();
  request.selection = SelectionSettings{.policy = SelectionPolicy::kQuest,
                                        .budget_ratio = 2500};

  Start(/*with_node=*/false);
  const SequenceTierStats full = Run(request).end.tiers;
  const auto selected = TakeLogits();
  Start(/*with_node=*/true);
  const SequenceTierStats cold = Run(request).end.tiers;

  EXPECT_TRUE(TakeLogits() == selected);
  EXPECT_FALSE(selected == dense);
  EXPECT_GT(full.skipped_groups, 0);
  EXPECT_EQ(cold.skipped_groups, full.skipped_groups);
  EXPECT_GT(cold.cold_rows_fetched, 0);
  EXPECT_EQ(full.destroyed_rows, 0);
}

// Only distances count, and recency leaves one stretch of rows: moved as a
// whole it gives the same logits, up to the rounding of turned keys. With keys
// that were not turned every distance is wrong.
TEST_F(EngineDestructionTest, CompactPositionsKeepDistancesMixedOnesDoNot) {
  KeepLogits();
  GenerationRequest request = Request("r");
  request.destruction = Fixed("recency", 200);
  request.destruction->protect_prompt = false;
  options_.kv_dtype = DType::kF32;
  Start(/*with_node=*/false);
  const Output absolute = Run(request);
  const auto expected = TakeLogits();
  request.forced = absolute.tokens;
  ASSERT_GT(absolute.end.tiers.destroyed_rows, 0);
  // Of all logits that chose tokens from `first` on.
  const auto difference = [&](PositionMode positions, size_t first) {
    options_.positions = positions;
    Start(/*with_node=*/false);
    const Output run = Run(request);
    EXPECT_EQ(run.end.tiers.destroyed_rows, absolute.end.tiers.destroyed_rows);
    const auto logits = TakeLogits();
    float largest = 0;
    for (size_t i = first; i < std::min(logits.size(), expected.size()); ++i) {
      for (size_t t = 0; t < logits[i].size(); ++t) {
        largest = std::max(largest, std::abs(logits[i][t] - expected[i][t]));
      }
    }
    return largest;
  };

  EXPECT_LT(difference(PositionMode::kCompact, 0), 2e-3f);
  // The event is at position 256.
  EXPECT_GT(difference(PositionMode::kMixed, 256 - kPrompt), 0.05f);
}

TEST_F(EngineDestructionTest, EachRequestHasItsOwnPolicyOrNone) {
  Start(/*with_node=*/false);
  const Output whole = Run(Request("whole"));
  options_.destruction = Fixed("recency", 64);
  Start(/*with_node=*/false);

  const Output by_default = Run(Request("by default"));
  GenerationRequest asks = Request("asks");
  asks.destruction = Fixed("recency", 200);
  const Output asked = Run(asks);
  GenerationRequest keeps = Request("keeps");
  keeps.destroy_nothing = true;
  const Output kept = Run(keeps);

  EXPECT_GT(by_default.end.tiers.destroyed_rows,
            asked.end.tiers.destroyed_rows);
  EXPECT_GT(asked.end.tiers.destroyed_rows, 0);
  EXPECT_EQ(kept.end.tiers.destroyed_rows, 0);
  EXPECT_EQ(kept.tokens, whole.tokens);
}

TEST_F(EngineDestructionTest,
       WhatIsDestroyedIsCountedByPolicyAndStaysInTheLog) {
  Metrics metrics;
  options_.metrics = &metrics;
  Start(/*with_node=*/false);
  GenerationRequest request = Request("r");
  request.destruction = Fixed("recency", 200);

  const SequenceTierStats tiers = Run(request).end.tiers;

  ASSERT_GT(tiers.destroyed_rows, 0);
  const std::string text = metrics.Render();
  const auto line = [](const char* name, const char* policy, int64_t value) {
    return absl::StrCat("\nfarkv_worker_", name, "{policy=\"", policy, "\"} ",
                        value, "\n");
  };
  EXPECT_THAT(text, HasSubstr(line("destroyed_rows_total", "recency",
                                   tiers.destroyed_rows)));
  EXPECT_THAT(text,
              HasSubstr(line("evictions_total", "recency", tiers.evictions)));
  EXPECT_THAT(text, HasSubstr(line("destroyed_rows_total", "h2o", 0)));
  EXPECT_THAT(text, HasSubstr("\nfarkv_worker_skipped_evictions_total 0\n"));
  std::vector<LoggedEviction> log;
  absl::Notification told;
  ASSERT_TRUE(engine_
                  ->Ask([&](const EngineView& view) {
                    log = view.Decisions({.count = 1000, .sessions = {}});
                    told.Notify();
                  })
                  .ok());
  told.WaitForNotification();
  ASSERT_EQ(static_cast<int64_t>(log.size()), tiers.evictions);
  EXPECT_EQ(log.front().request_id, "r");
  EXPECT_EQ(log.front().record.policy, "recency");
  int64_t destroyed = 0;
  for (const LoggedEviction& event : log) {
    destroyed += event.record.destroyed_rows;
    EXPECT_EQ(event.candidates + kPrompt * 8,
              event.kept + event.record.destroyed_rows);
  }
  EXPECT_EQ(destroyed, tiers.destroyed_rows);
  engine_ = nullptr;
}

TEST_F(EngineDestructionTest, ABudgetThatCannotHoldThePromptIsRefusedAtOnce) {
  Start(/*with_node=*/false);
  GenerationRequest request = Request("r");
  request.destruction = Fixed("vase-dkv", kPrompt + 60);

  const auto refused = engine_->Submit(request);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("a budget of 92 tokens"));
}

TEST_F(EngineDestructionTest, TheCacheSinkSeesWhatIsLeft) {
  std::vector<size_t> left;
  options_.cache_sink = [&](const EngineView& engine, const std::string& id,
                            int64_t position) {
    const auto live = engine.LivePositions(id);
    ASSERT_TRUE(live.ok()) << live.status();
    left.push_back(live->size());
    // The youngest row is that of the token before.
    EXPECT_EQ(live->back(), position - 1);
  };
  options_.destruction = Fixed("streaming-llm", 100);
  Start(/*with_node=*/false);
  Run(Request("r"));
  engine_ = nullptr;

  ASSERT_EQ(left.size(), static_cast<size_t>(kTokens));
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i], std::min<size_t>(100, kPrompt + i));
  }
}

}  // namespace
}  // namespace farkv
