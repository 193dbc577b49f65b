// Selection in the cache: a step attends to the rows that it should, to the
// same ones with the same bits wherever they lie, and destroys none.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "test_node.h"
#include "tests/testing/in_process_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSelectionPrompt = 150;
constexpr int64_t kSelectionTotal = 420;

TieringOptions SelectionTiering(int granularity) {
  TieringOptions options;
  options.granularity = granularity;
  options.t0_bytes = uint64_t{1} << 20;
  options.heartbeat = absl::Seconds(5);
  options.lease = absl::Minutes(6);
  options.rpc_timeout = absl::Minutes(2);
  options.stripe_tokens = 64;
  options.spread = true;
  return options;
}

// One layer reads everything, the other two what is asked.
SelectionSettings Quest(int group_tokens, int64_t budget_tokens) {
  return {.policy = SelectionPolicy::kQuest,
          .group_tokens = group_tokens,
          .budget_tokens = budget_tokens,
          .dense_layers = 1};
}

SequenceSpec Spec(int granularity, const SelectionSettings& selection) {
  SequenceSpec spec = TestSpec(granularity, kSelectionPrompt, kSelectionTotal);
  spec.placement.prompt_in_t0 = false;
  spec.selection = selection;
  return spec;
}

struct Outcome {
  std::vector<std::vector<std::vector<float>>> outputs;
  std::vector<int64_t> scores;
  SequenceTierStats stats;
};

// Every store is awaited, so that drops become certain.
void GenerateSelecting(KvCache& cache, Stream& stream,
                       const KvGeometry& geometry, const SequenceSpec& spec,
                       Outcome& run) {
  Harness harness(cache, stream, geometry);
  const auto id = cache.Open(spec);
  ASSERT_TRUE(id.ok()) << id.status();
  for (int64_t done = 0; done < kSelectionPrompt; done += 50) {
    ASSERT_TRUE(harness.Step(*id, 50).ok());
    ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
  }
  for (int64_t i = kSelectionPrompt; i < kSelectionTotal; ++i) {
    const absl::Status status = harness.Step(*id, 1);
    ASSERT_TRUE(status.ok()) << status;
    if (i % 8 != 0) continue;
    ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
  }
  run = {harness.outputs(), cache.Scores(*id), cache.Stats(*id)};
}

// With all rows in T0.
Outcome InT0(const SequenceSpec& spec, DType dtype = DType::kBf16) {
  const KvGeometry geometry = TestGeometry(dtype);
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  const std::unique_ptr<Stream> stream = device->NewStream();
  const auto cache =
      KvCache::Create(SelectionTiering(spec.placement.granularity), geometry,
                      kQueryHeads, *device)
          .value();
  Outcome run;
  GenerateSelecting(*cache, *stream, geometry, spec, run);
  return run;
}

struct SelectionCase {
  const char* mode;  // "map", "prefetch", "pushdown"
  int granularity;
  int group_tokens = 16;
  const char* device = "cpu";
  const char* eviction = nullptr;  // beside it
};

class SelectionTest : public ::testing::TestWithParam<SelectionCase> {
 protected:
  SequenceSpec SpecOf() const {
    const SelectionCase& given = GetParam();
    SequenceSpec spec = Spec(given.granularity, Quest(given.group_tokens, 96));
    if (given.eviction == nullptr) return spec;
    spec.destruction.emplace();
    spec.destruction->policy = **ParseDestructionPolicy(given.eviction);
    spec.destruction->budget.bounds = {.per_event_ratio = 1000,
                                       .cumulative_cap = 6000};
    spec.destruction->interval = 16;
    spec.destruction->recent = 32;
    return spec;
  }

  Outcome OnNodes(const SequenceSpec& spec) const {
    ThreadPool pool(1);
    const auto device = OpenDevice(GetParam().device, pool).value();
    const std::unique_ptr<Stream> stream = device->NewStream();
    TieringOptions options = SelectionTiering(GetParam().granularity);
    Outcome run;
    if (std::string(GetParam().mode) == "map") {
      char dir_template[] = "/tmp/farkv-map-XXXXXX";
      options.map_dir = mkdtemp(dir_template);
      options.cold = ColdMode::kAuto;
      LoopbackNetwork network(LoopbackNetwork::Drive::kThread);
      TestNode node0(network, TestGeometry(), "node0", 4096, options.map_dir);
      TestNode node1(network, TestGeometry(), "node1", 4096, options.map_dir);
      options.memory_nodes = {"0", "1"};
      GenerateSelecting(
          *KvCache::CreateWith(options, TestGeometry(), kQueryHeads, *device,
                               AccessTo(network, {&node0, &node1}))
               .value(),
          *stream, TestGeometry(), spec, run);
      EXPECT_EQ(system(("rm -r " + options.map_dir).c_str()), 0);
      return run;
    }
    std::vector<std::unique_ptr<Node>> nodes;
    for (const char* name : {"n0", "n1"}) {
      nodes.push_back(
          StartInProcessNode(InProcessNodeOptions(name), nullptr).value());
      options.memory_nodes.push_back(
          "127.0.0.1:" + std::to_string(nodes.back()->ports().listen));
    }
    options.cold = std::string(GetParam().mode) == "pushdown"
                       ? ColdMode::kPushdown
                       : ColdMode::kPrefetch;
    GenerateSelecting(
        *KvCache::Create(options, TestGeometry(), kQueryHeads, *device).value(),
        *stream, TestGeometry(), spec, run);
    return run;
  }
};

TEST_P(SelectionTest, TheSameRowsAreReadWithTheSameBitsWhereverTheyLie) {
  const SequenceSpec spec = SpecOf();

  const Outcome full = InT0(spec);
  const Outcome cold = OnNodes(spec);

  EXPECT_TRUE(cold.outputs == full.outputs);
  EXPECT_EQ(cold.scores, full.scores);
  EXPECT_EQ(cold.stats.selected_groups, full.stats.selected_groups);
  EXPECT_EQ(cold.stats.skipped_groups, full.stats.skipped_groups);
  EXPECT_GT(full.stats.skipped_groups, 0);
  EXPECT_EQ(cold.stats.cold_mode, GetParam().mode);
  EXPECT_GT(cold.stats.t1_tokens, 0);
  EXPECT_EQ(cold.stats.destroyed_rows, full.stats.destroyed_rows);
  EXPECT_EQ(full.stats.destroyed_rows > 0, GetParam().eviction != nullptr);
  EXPECT_EQ(cold.stats.lost_score_collections, 0);
  EXPECT_EQ(cold.stats.cold_rows_by_node.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SelectionTest,
    ::testing::Values(SelectionCase{"map", 16}, SelectionCase{"map", 64, 64},
                      SelectionCase{"prefetch", 16},
                      SelectionCase{"prefetch", 1, 8},
                      SelectionCase{"prefetch", 16, 16, "fake"},
                      SelectionCase{"prefetch", 16, 16, "cpu", "tiers"},
                      SelectionCase{"pushdown", 16},
                      SelectionCase{"pushdown", 64, 64},
                      SelectionCase{"pushdown", 1, 16, "fake"},
                      SelectionCase{"pushdown", 16, 16, "cpu", "tiers"},
                      SelectionCase{"pushdown", 16, 16, "cpu", "vase-dkv"}),
    [](const ::testing::TestParamInfo<SelectionCase>& given) {
      const SelectionCase& c = given.param;
      std::string eviction = c.eviction == nullptr ? "" : c.eviction;
      std::erase(eviction, '-');
      return std::string(c.mode) + "Granularity" +
             std::to_string(c.granularity) + "Groups" +
             std::to_string(c.group_tokens) + "On" + c.device + eviction;
    });

// Attention of one row of layer 2 by the definition: Harness's numbers, in
// groups of 16, `num_groups` of them with the largest bounds, and the last.
class Definition {
 public:
  Definition(uint64_t sequence, int64_t position)
      : num_rows_(position + 1),
        keys_(Numbers(3 * sequence, 2, 0, static_cast<int>(num_rows_), 32)),
        values_(
            Numbers(3 * sequence + 1, 2, 0, static_cast<int>(num_rows_), 32)),
        query_(Numbers(3 * sequence + 2, 2, position, 1, 64)) {}

  std::vector<double> Output(size_t num_groups) const {
    std::vector<double> out;
    for (int head = 0; head < 2; ++head) {
      const std::vector<bool> read = Groups(head, num_groups);
      for (int q = 2 * head; q < 2 * head + 2; ++q) AddHead(head, q, read, out);
    }
    return out;
  }

 private:
  double Key(int64_t row, int head, int c) const {
    return keys_[static_cast<size_t>(row * 32 + head * 16 + c)];
  }
  double Query(int q, int c) const {
    return query_[static_cast<size_t>(q * 16 + c)];
  }
  double Bound(int64_t group, int head, int q) const {
    double bound = 0;
    for (int c = 0; c < 16; ++c) {
      double largest = -1e9;
      for (int64_t row = group * 16; row < group * 16 + 16; ++row) {
        largest = std::max(largest, Query(q, c) * Key(row, head, c));
      }
      bound += largest;
    }
    return bound;
  }
  // By group: whether it is read.
  std::vector<bool> Groups(int head, size_t num_groups) const {
    const auto full = static_cast<size_t>((num_rows_ - 1) / 16);
    std::vector<double> scores(full, -1e9);
    for (int q = 2 * head; q < 2 * head + 2; ++q) {
      std::vector<double> bounds;
      for (size_t g = 0; g < full; ++g) {
        bounds.push_back(Bound(static_cast<int64_t>(g), head, q));
      }
      const double largest = *std::max_element(bounds.begin(), bounds.end());
      for (size_t g = 0; g < full; ++g) {
        scores[g] = std::max(scores[g], bounds[g] - largest);
      }
    }
    std::vector<double> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    std::vector<bool> read;
    for (size_t g = 0; g < full; ++g) {
      read.push_back(scores[g] >= sorted[num_groups - 2]);
    }
    read.push_back(true);
    return read;
  }
  void AddHead(int head, int q, const std::vector<bool>& read,
               std::vector<double>& out) const {
    std::vector<double> sums(16);
    double total = 0;
    for (int64_t row = 0; row < num_rows_; ++row) {
      if (!read[static_cast<size_t>(row / 16)]) continue;
      double logit = 0;
      for (int c = 0; c < 16; ++c) logit += Query(q, c) * Key(row, head, c);
      const double weight = std::exp(0.25 * logit);
      total += weight;
      for (int c = 0; c < 16; ++c) {
        sums[static_cast<size_t>(c)] +=
            weight * values_[static_cast<size_t>(row * 32 + head * 16 + c)];
      }
    }
    for (const double sum : sums) out.push_back(sum / total);
  }

  const int64_t num_rows_;
  const std::vector<float> keys_, values_, query_;
};

TEST(SelectedRowsTest, AreTheCurrentGroupAndThoseWithTheLargestBounds) {
  const Outcome run = InT0(Spec(16, Quest(16, 96)), DType::kF32);

  // The prompt took three steps.
  for (const int64_t position :
       {kSelectionPrompt, int64_t{239}, int64_t{240}, kSelectionTotal - 1}) {
    const auto step = static_cast<size_t>(position - kSelectionPrompt + 3);
    const std::vector<float>& out = run.outputs[step][2];
    const std::vector<double> expected = Definition(1, position).Output(6);
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i], 1e-5) << position << ", " << i;
    }
  }
}

TEST(SelectedRowsTest, ABudgetForAllOfThemChangesNoBit) {
  const Outcome dense = InT0(Spec(16, {}));
  SelectionSettings everything = Quest(16, 96);
  everything.budget_ratio = 10000;

  const Outcome run = InT0(Spec(16, everything));

  EXPECT_TRUE(run.outputs == dense.outputs);
  EXPECT_EQ(run.scores, dense.scores);
  EXPECT_EQ(run.stats.skipped_groups, 0);
  EXPECT_EQ(dense.stats.selected_groups, 0);
}

TEST(SelectedRowsTest, ThePromptAndTheFirstLayersReadEverything) {
  const Outcome dense = InT0(Spec(16, {}));

  const Outcome run = InT0(Spec(16, Quest(16, 96)));

  for (size_t step = 0; step < run.outputs.size(); ++step) {
    EXPECT_TRUE(run.outputs[step][0] == dense.outputs[step][0]);
    if (step >= 3) continue;
    EXPECT_TRUE(run.outputs[step] == dense.outputs[step]);
  }
  // Two layers, two heads; groups as there were at each step, six of them read.
  int64_t groups = 0;
  for (int64_t p = kSelectionPrompt; p < kSelectionTotal; ++p)
    groups += p / 16 + 1;
  EXPECT_EQ(run.stats.selected_groups,
            (kSelectionTotal - kSelectionPrompt) * 6 * 4);
  EXPECT_EQ(run.stats.skipped_groups, groups * 4 - run.stats.selected_groups);
}

class OneCacheTest : public ::testing::Test {
 protected:
  absl::Status Begin(SequenceId id, int rows) {
    const StepRows step{id, rows};
    return cache_->Begin({&step, 1}, *stream_);
  }

  const KvGeometry geometry_ = TestGeometry();
  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  std::unique_ptr<KvCache> cache_ =
      KvCache::Create(SelectionTiering(16), geometry_, kQueryHeads, *device_)
          .value();
  Harness harness_{*cache_, *stream_, geometry_};
};

TEST_F(OneCacheTest, AScorerOfTheSequencesOwnChooses) {
  SequenceSpec spec = Spec(16, Quest(16, 48));
  std::vector<GroupScoreQuery> asked;
  int64_t groups = 0;
  spec.group_scorer = [&](const GroupScoreQuery& query) {
    EXPECT_EQ(query.queries.size(), 32u);
    asked.push_back(query);
    std::vector<float> scores(static_cast<size_t>(groups));
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = -static_cast<float>(i);  // the oldest first
    }
    return scores;
  };
  const SequenceId id = cache_->Open(spec).value();
  ASSERT_TRUE(harness_.Step(id, kSelectionPrompt).ok());
  EXPECT_TRUE(asked.empty());
  groups = kSelectionPrompt / 16;

  ASSERT_TRUE(harness_.Step(id, 1).ok());
  ASSERT_EQ(asked.size(), 4u);
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i].request, id.value);
    EXPECT_EQ(asked[i].layer, static_cast<int32_t>(i / 2) + 1);
    EXPECT_EQ(asked[i].kv_head, static_cast<int32_t>(i % 2));
    EXPECT_EQ(asked[i].num_heads, 2);
  }
  const std::vector<int64_t> scores = cache_->Scores(id);
  EXPECT_EQ(cache_->Stats(id).selected_groups, 3 * 4);
  ++groups;
  const absl::Status wrong = harness_.Step(id, 1);

  EXPECT_EQ(wrong.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(wrong.message()),
              HasSubstr("the scorer has 10 groups, 9 are full"));
  EXPECT_EQ(cache_->Scores(id), scores);
}

TEST_F(OneCacheTest, ADiscardedStepCountsNothing) {
  const SequenceId id = cache_->Open(Spec(16, Quest(16, 48))).value();
  ASSERT_TRUE(harness_.Step(id, kSelectionPrompt).ok());
  ASSERT_TRUE(Begin(id, 1).ok());
  const std::vector<float> queries(64, 1.0f);
  for (int layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(cache_->PrepareLayer(layer)->needs_queries, layer == 1);
    ASSERT_TRUE(cache_->SendQueries(layer, queries.data(), 0.25f).ok());
  }

  cache_->Discard();

  EXPECT_EQ(cache_->Stats(id).selected_groups, 0);
  ASSERT_TRUE(harness_.Step(id, 1).ok());
  EXPECT_EQ(cache_->Stats(id).selected_groups, 3 * 4);
}

TEST_F(OneCacheTest, RowsBehindThePromptComeOneByOne) {
  const SequenceId id = cache_->Open(Spec(16, Quest(16, 48))).value();

  const absl::Status refused = Begin(id, kSelectionPrompt + 1);

  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("asks for 151 rows up to position 151; behind the "
                        "prompt of 150 a step with selection has one"));
}

TEST_F(OneCacheTest, GroupsDivideAPage) {
  const auto refused = cache_->Open(Spec(16, Quest(48, 96)));

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("group_tokens of selection is 48"));
}

}  // namespace
}  // namespace farkv
