// Destroying policies in the cache: what is destroyed depends on nothing but
// the request. Every policy with all rows in T0 against the same one with most
// rows on two memory nodes over UCX: the same bits, the same decisions.
#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "tests/testing/in_process_node.h"

namespace farkv {
namespace {

constexpr int64_t kTotal = 420;
constexpr int kGranularity = 16;

struct Case {
  const char* name;
  const char* policy;
  BudgetKind kind = BudgetKind::kFixed;
  int64_t tokens = 192;  // of kFixed
  int32_t ratio = 5000;  // of kProportional; per event of kBounds
  int64_t prompt = 70;
  bool protect_prompt = true;
};

DestructionSettings SettingsOf(const Case& given) {
  DestructionSettings settings;
  settings.policy = **ParseDestructionPolicy(given.policy);
  settings.budget.kind = given.kind;
  settings.budget.tokens = given.tokens;
  settings.budget.ratio = given.ratio;
  settings.budget.bounds = {.per_event_ratio = given.ratio,
                            .cumulative_cap = 6000};
  settings.protect_prompt = given.protect_prompt;
  settings.interval = 16;
  settings.recent = 32;
  if (auto* tiers = std::get_if<TiersPolicy>(&settings.policy)) {
    *tiers = {.interval = 16, .sinks = 4, .recent = 32};
  }
  return settings;
}

struct Outcome {
  std::vector<std::vector<std::vector<float>>> outputs;
  std::vector<int64_t> scores;
  std::vector<EvictionRecord> records;
  std::vector<PageLiveRows> live;
  SequenceTierStats stats;
};

// Stores are awaited, so that rows certainly leave T0.
void Generate(KvCache& cache, const KvGeometry& geometry, Stream& stream,
              const SequenceSpec& spec, Outcome& run) {
  Harness harness(cache, stream, geometry);
  const auto id = cache.Open(spec);
  ASSERT_TRUE(id.ok()) << id.status();
  for (int64_t done = 0; done < spec.prompt_tokens;) {
    const int64_t rows = std::min<int64_t>(50, spec.prompt_tokens - done);
    ASSERT_TRUE(harness.Step(*id, static_cast<int>(rows)).ok());
    done += rows;
  }
  for (int64_t i = spec.prompt_tokens; i < spec.max_tokens; ++i) {
    const absl::Status status = harness.Step(*id, 1);
    ASSERT_TRUE(status.ok()) << status;
    if (i % 8 != 0) continue;
    ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
  }
  run.outputs = harness.outputs();
  run.scores = cache.Scores(*id);
  run.records = cache.Evictions(*id);
  run.live = cache.LiveRows(*id);
  run.stats = cache.Stats(*id);
}

TieringOptions Options(ColdMode cold) {
  TieringOptions options;
  options.granularity = kGranularity;
  options.t0_bytes = uint64_t{1} << 20;
  options.heartbeat = absl::Seconds(5);
  options.cold = cold;
  options.stripe_tokens = 64;
  options.spread = true;
  return options;
}

class DestructionTest : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    for (int i = 0; i < 2; ++i) {
      nodes_.push_back(
          StartInProcessNode(InProcessNodeOptions("n" + std::to_string(i)),
                             nullptr)
              .value());
    }
  }
  static void TearDownTestSuite() { nodes_.clear(); }

  SequenceSpec Spec() const {
    SequenceSpec spec = TestSpec(kGranularity, GetParam().prompt, kTotal);
    spec.placement.prompt_in_t0 = false;
    spec.destruction = SettingsOf(GetParam());
    return spec;
  }

  // With all rows in T0, or with two nodes.
  Outcome Run(const SequenceSpec& spec, ColdMode cold, bool nodes,
              const char* device_name = "cpu") const {
    const KvGeometry geometry = TestGeometry();
    ThreadPool pool(1);
    const auto device = OpenDevice(device_name, pool).value();
    const std::unique_ptr<Stream> stream = device->NewStream();
    TieringOptions options = Options(cold);
    for (size_t i = 0; nodes && i < nodes_.size(); ++i) {
      options.memory_nodes.push_back("127.0.0.1:" +
                                     std::to_string(nodes_[i]->ports().listen));
    }
    const auto cache =
        KvCache::Create(options, geometry, kQueryHeads, *device).value();
    Outcome run;
    Generate(*cache, geometry, *stream, spec, run);
    return run;
  }

  static void ExpectAlike(const Outcome& full, const Outcome& tiered) {
    EXPECT_TRUE(tiered.outputs == full.outputs);
    EXPECT_TRUE(tiered.records == full.records);
    EXPECT_EQ(tiered.stats.evictions_digest, full.stats.evictions_digest);
    EXPECT_TRUE(tiered.live == full.live);
    EXPECT_EQ(tiered.scores, full.scores);
    EXPECT_EQ(tiered.stats.destroyed_rows, full.stats.destroyed_rows);
    EXPECT_EQ(tiered.stats.t3_tokens, full.stats.t3_tokens);
    EXPECT_EQ(tiered.stats.postponed_evictions, 0);
  }

  static void ExpectRowsOnBothNodes(const SequenceTierStats& stats) {
    EXPECT_EQ(stats.cold_rows_by_node.size(), 2u);
    for (const auto& [node, rows] : stats.cold_rows_by_node) {
      EXPECT_GT(rows, 100) << node;
    }
    // Sinks, the youngest, an open page and 30 % of the others.
    EXPECT_LT(5 * stats.t0_tokens, 3 * (stats.t0_tokens + stats.t1_tokens));
  }

  inline static std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_P(DestructionTest, DecisionsAndBitsDoNotDependOnWhereRowsLie) {
  const SequenceSpec spec = Spec();
  const Outcome full = Run(spec, ColdMode::kPrefetch, /*nodes=*/false);
  EXPECT_GT(full.stats.evictions, 0);
  EXPECT_GT(full.stats.destroyed_rows, 0);
  const Outcome fetched = Run(spec, ColdMode::kPrefetch, /*nodes=*/true);
  ExpectAlike(full, fetched);
  EXPECT_GT(fetched.stats.cold_rows_fetched, 500);
  ExpectRowsOnBothNodes(fetched.stats);
  const Outcome attended =
      Run(spec, ColdMode::kPushdown, /*nodes=*/true, "fake");
  ExpectAlike(full, attended);
  // Attention that is added up per head is computed where the heads are.
  const PolicyNeeds needs = NeedsOf(spec.destruction->policy);
  const bool pushes = !needs.cumulative || needs.shared_by_heads;
  EXPECT_EQ(attended.stats.cold_rows_pushed_down > 500, pushes);
}

TEST_P(DestructionTest, TheBudgetHoldsForEveryHeadAndThePromptStays) {
  const Case& given = GetParam();
  const Outcome run = Run(Spec(), ColdMode::kPrefetch, /*nodes=*/false);
  const int64_t generated = kTotal - given.prompt;
  for (size_t head = 0; head < run.live[0].live.size(); ++head) {
    int64_t rows = 0, prompt = 0;
    for (const PageLiveRows& page : run.live) {
      rows += std::popcount(page.live[head]);
      for (int slot = 0; slot < kPageTokens; ++slot) {
        const int64_t position = page.page_index * kPageTokens + slot;
        if (position >= given.prompt) continue;
        prompt += (page.live[head] >> slot & 1) != 0 ? 1 : 0;
      }
    }
    if (given.protect_prompt) {
      EXPECT_EQ(prompt, given.prompt);
    }
    const int64_t destroyed = kTotal - rows;
    EXPECT_GT(destroyed, 0);
    if (given.kind == BudgetKind::kBounds) {
      EXPECT_LE(destroyed, generated * 6000 / 10000);
    } else if (given.kind == BudgetKind::kFixed && given.protect_prompt) {
      EXPECT_LT(rows, given.tokens + 128);  // the longest of all intervals
    }
  }
  EXPECT_EQ(run.stats.t3_tokens + run.stats.t0_tokens, kTotal);
  EXPECT_GT(run.stats.destroyed_share, 0);
  EXPECT_LE(run.stats.destroyed_share_average, run.stats.destroyed_share + 0.3);
}

constexpr auto kFixed = BudgetKind::kFixed;
constexpr auto kProportional = BudgetKind::kProportional;
constexpr auto kBounds = BudgetKind::kBounds;

INSTANTIATE_TEST_SUITE_P(
    Policies, DestructionTest,
    ::testing::Values(
        Case{"TiersBounds", "tiers", kBounds, 0, 1000},
        Case{"TiersHalf", "tiers", kProportional},
        Case{"H2o", "h2o", kFixed, 160}, Case{"H2oHalf", "h2o", kProportional},
        Case{"Streaming", "streaming-llm", kFixed, 160},
        Case{"Recency", "recency", kFixed, 120}, Case{"Random", "random"},
        Case{"RandomBounds", "random", kBounds, 0, 1000, 70, false},
        Case{"SnapKvPrompt", "snap-kv-prompt", kFixed, 120, 0, 150, false},
        Case{"SnapKvRkv", "snap-kv-rkv", kFixed, 150},
        Case{"SnapKvVase", "snap-kv-vase"},
        Case{"SnapKvVaseBounds", "snap-kv-vase", kBounds, 0, 1000},
        Case{"RkvOfficial", "rkv-official", kFixed, 150},
        Case{"RkvMean", "rkv-mean", kProportional, 0, 6000},
        Case{"CurDkv", "cur-dkv"}, Case{"VaseAttnV", "vase-attn-v"},
        Case{"VaseAttnVPromptToo", "vase-attn-v", kFixed, 128, 0, 70, false},
        Case{"VaseDkv", "vase-dkv"}),
    [](const ::testing::TestParamInfo<Case>& given) {
      return given.param.name;
    });

}  // namespace
}  // namespace farkv
