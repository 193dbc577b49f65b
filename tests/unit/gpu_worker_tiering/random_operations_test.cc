// Many sequences in random company, with a node that refuses and damages:
// every output bit as in a full cache driven alike, and nothing left behind.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"

namespace farkv {
namespace {

constexpr int kOperations = 350;
constexpr int64_t kMaxTokens = 500;

class RandomOperationsTest : public ::testing::TestWithParam<int> {
 protected:
  std::unique_ptr<KvCache> Make(uint64_t t0_bytes,
                                std::vector<std::string> nodes) {
    TieringOptions options;
    options.granularity = GetParam();
    options.t0_bytes = t0_bytes;
    options.memory_nodes = std::move(nodes);
    options.spread = true;
    options.stripe_tokens = 128;
    options.heartbeat = absl::Seconds(5);  // no stall of the test loses a node
    return KvCache::CreateWith(options, geometry_, kQueryHeads, *device_,
                               AccessTo(network_, {&node0_, &node1_}))
        .value();
  }

  uint64_t Draw(uint64_t bound) {
    return CounterDraw(static_cast<uint64_t>(GetParam()), {++draws_}) % bound;
  }

  // Half of them lose rows, by policies that no fetch can hold up: a damaged
  // one would postpone the event.
  SequenceSpec Spec() {
    SequenceSpec spec =
        TestSpec(GetParam(), static_cast<int64_t>(1 + Draw(120)), kMaxTokens);
    const char* policies[] = {"tiers", "h2o", "random", "recency",
                              "streaming-llm"};
    const uint64_t policy = Draw(2 * std::size(policies));
    if (policy >= std::size(policies)) return spec;
    DestructionSettings& settings = spec.destruction.emplace();
    settings.policy = **ParseDestructionPolicy(policies[policy]);
    settings.interval = 16;
    settings.recent = 32;
    settings.budget.bounds = {.per_event_ratio = 1000, .cumulative_cap = 8000};
    settings.budget.tokens = 200;
    if (policy > 2) settings.budget.kind = BudgetKind::kFixed;
    return spec;
  }

  // Rows that did not come are computed again, some at a time and in company,
  // where that is allowed; where it is not, they come when they are asked for
  // again. With draws of its own: what fails is a matter of time.
  void Mend(KvCache& cache, absl::Time end) {
    Harness harness(cache, *stream_, geometry_);
    const std::vector<SequenceId> failed = cache.failed_sequences();
    for (const SequenceId id : failed) {
      std::vector<int64_t> lost = cache.GiveUpLostRows(id);
      given_up_ += static_cast<int64_t>(lost.size());
      while (!lost.empty() && absl::Now() < end) {
        const auto rows = static_cast<ptrdiff_t>(std::min<uint64_t>(
            lost.size(), 1 + CounterDraw(99, {++mend_draws_}) % 60));
        const std::vector<int64_t> some(lost.begin(), lost.begin() + rows);
        if (!harness.Step({{id, static_cast<int>(rows), some}}).ok()) continue;
        lost.erase(lost.begin(), lost.begin() + rows);
      }
      ASSERT_TRUE(lost.empty());
    }
  }

  // Damage and loss may fail a step; the engine repeats it.
  void StepBoth(Harness& tiered, Harness& full, KvCache& cache) {
    std::vector<Batch> batch;
    for (SequenceId id : open_) {
      const auto rows = static_cast<int>(Draw(4) == 0 ? 1 + Draw(90) : 1);
      if (Draw(3) == 0 || cache.num_tokens(id) + rows > kMaxTokens) continue;
      batch.push_back({id, rows});
    }
    if (batch.empty()) return;
    absl::Status status = tiered.Step(batch);
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (!status.ok() && absl::Now() < end) {
      Mend(cache, end);
      status = tiered.Step(batch);
    }
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(full.Step(batch).ok());
  }

  void Count(const KvCache& tiered, const KvCache& full, SequenceId id) {
    cold_rows_ += tiered.Stats(id).cold_rows_fetched;
    destroyed_rows_ += tiered.Stats(id).destroyed_rows;
    EXPECT_EQ(tiered.Stats(id).evictions_digest,
              full.Stats(id).evictions_digest);
  }

  void Disturb() {
    TestNode& node = Draw(2) == 0 ? node0_ : node1_;
    const uint64_t kind = Draw(3);
    if (kind == 0) node.RefuseStores(static_cast<int>(Draw(4)));
    if (kind == 1) node.RefuseReservations(static_cast<int>(Draw(3)));
    if (kind == 2) node.DamageFetches(static_cast<int>(3 * Draw(3)));
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode node0_{network_, geometry_, "node0"};
  TestNode node1_{network_, geometry_, "node1"};
  std::vector<SequenceId> open_;
  uint64_t draws_ = 0;
  uint64_t mend_draws_ = 0;
  int64_t cold_rows_ = 0;  // read
  int64_t given_up_ = 0;
  int64_t destroyed_rows_ = 0;
};

TEST_P(RandomOperationsTest, AnyCompanyGivesTheBitsOfAFullCache) {
  auto full = Make(uint64_t{8} << 20, {});
  auto tiered = Make(uint64_t{2} << 20, {"0", "1"});
  Harness reference(*full, *stream_, geometry_);
  Harness harness(*tiered, *stream_, geometry_);
  for (int i = 0; i < kOperations; ++i) {
    const uint64_t operation = Draw(20);
    const size_t index = open_.empty() ? 0 : Draw(open_.size());
    if (open_.empty() || (operation == 0 && open_.size() < 4)) {
      const SequenceSpec spec = Spec();
      open_.push_back(tiered->Open(spec).value());
      ASSERT_EQ(full->Open(spec).value(), open_.back());
    } else if (operation == 1) {
      EXPECT_EQ(tiered->Scores(open_[index]), full->Scores(open_[index]));
      Count(*tiered, *full, open_[index]);
      tiered->Close(open_[index]);
      full->Close(open_[index]);
      open_.erase(open_.begin() + static_cast<int64_t>(index));
    } else if (operation == 2) {
      tiered->Park(open_[index]);
    } else if (operation == 3) {
      const StepRows rows[] = {{open_[index], 1}};
      if (tiered->Begin(rows, *stream_).ok()) tiered->Discard();
    } else if (operation == 4) {
      Disturb();
    } else if (operation == 5) {
      ASSERT_TRUE(tiered->Drain(absl::Seconds(20)).ok());
    } else {
      StepBoth(harness, reference, *tiered);
      if (HasFatalFailure()) return;
    }
  }

  EXPECT_EQ(harness.outputs(), reference.outputs());
  for (SequenceId id : open_) Count(*tiered, *full, id);
  EXPECT_GT(cold_rows_, 1000);
  RecordProperty("rows_given_up", static_cast<int>(given_up_));
  EXPECT_GT(destroyed_rows_, 100);
  for (SequenceId id : open_) tiered->Close(id);
  EXPECT_EQ(tiered->t0_usage().used_bytes, 0u);
  EXPECT_TRUE(tiered->Drain(absl::Seconds(20)).ok());
  EXPECT_EQ(node0_.used_pages() + node1_.used_pages(), 0);
  EXPECT_EQ(node0_.sessions() + node1_.sessions(), 0);
}

INSTANTIATE_TEST_SUITE_P(Granularities, RandomOperationsTest,
                         ::testing::Values(1, 16, 64),
                         [](const ::testing::TestParamInfo<int>& given) {
                           return std::to_string(given.param);
                         });

}  // namespace
}  // namespace farkv
