// Rows that are lost with one of two nodes that attend: they alone are computed
// again unless attention that the node had gathered is lost with them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "tests/testing/in_process_node.h"

namespace farkv {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr int64_t kPromptTokens = 150;
constexpr int64_t kStrike = 360;  // no plan is made there
constexpr int64_t kAllTokens = 420;

class PushdownLostRowsTest : public ::testing::Test {
 protected:
  PushdownLostRowsTest() {
    TieringOptions options;
    options.granularity = 16;
    options.t0_bytes = uint64_t{1} << 20;
    options.cold = ColdMode::kPushdown;
    options.stripe_tokens = 64;
    options.spread = true;
    full_ = KvCache::Create(options, geometry_, kQueryHeads, *device_).value();
    reference_ = std::make_unique<Harness>(*full_, *stream_, geometry_);
    const SequenceSpec spec = TestSpec(16, kPromptTokens, kAllTokens);
    full_id_ = full_->Open(spec).value();
    Run(*full_, *reference_, full_id_, kAllTokens);
    for (int i = 0; i < 2; ++i) {
      NodeOptions node = InProcessNodeOptions("n" + std::to_string(i));
      nodes_.push_back(StartInProcessNode(node, nullptr).value());
      options.memory_nodes.push_back(
          "127.0.0.1:" + std::to_string(nodes_.back()->ports().listen));
    }
    cache_ = KvCache::Create(options, geometry_, kQueryHeads, *device_).value();
    harness_ = std::make_unique<Harness>(*cache_, *stream_, geometry_);
    id_ = cache_->Open(spec).value();
    Run(*cache_, *harness_, id_, kStrike);
  }
  // Its sessions end with it.
  ~PushdownLostRowsTest() override { cache_ = nullptr; }

  static void Run(KvCache& cache, Harness& harness, SequenceId id,
                  int64_t end) {
    while (cache.num_tokens(id) < end) {
      const int rows = cache.num_tokens(id) < kPromptTokens ? 50 : 1;
      absl::Status status = harness.Step(id, rows);
      for (int tries = 1; absl::IsAborted(status) && tries < 5; ++tries) {
        status = harness.Step(id, rows);
      }
      ASSERT_TRUE(status.ok()) << status;
      if (cache.num_tokens(id) >= kStrike) continue;
      ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
    }
  }

  std::vector<int64_t> ColdOn(const std::string& node) const {
    std::vector<int64_t> cold;
    for (const PageTierMap& page : cache_->TierMap(id_)) {
      for (size_t slot = 0; slot < page.tiers.size(); ++slot) {
        if (page.tiers[slot] != Tier::kT1 || page.node_id != node) continue;
        cold.push_back(int64_t{page.page_index} * kPageTokens +
                       static_cast<int64_t>(slot));
      }
    }
    return cold;
  }

  // Ends the first node; what is given up when a step fails for its rows.
  std::vector<int64_t> LoseNode() {
    nodes_[0] = nullptr;
    absl::Status status;
    for (int i = 0; i < 5 && !absl::IsUnavailable(status); ++i) {
      status = harness_->Step(id_, 1);
      EXPECT_FALSE(status.ok());
    }
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return cache_->GiveUpLostRows(id_);
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<KvCache> full_, cache_;
  std::unique_ptr<Harness> reference_, harness_;
  SequenceId full_id_, id_;
};

TEST_F(PushdownLostRowsTest, ChangeNoBitOfOutputsAndScoresOnceTheseAreThere) {
  ASSERT_GT(cache_->Stats(id_).cold_rows_pushed_down, 1000);
  const std::vector<int64_t> cold = ColdOn("n0");
  ASSERT_FALSE(cold.empty());
  ASSERT_FALSE(ColdOn("n1").empty());
  cache_->Scores(id_);  // collects them

  std::vector<int64_t> lost = LoseNode();

  ASSERT_THAT(lost, ElementsAreArray(cold));
  const size_t steps = harness_->outputs().size();
  size_t again = 0;
  // One row at the end, which a node could attend to, but must not.
  for (; !lost.empty(); ++again) {
    const auto rows =
        std::min<size_t>(std::max<size_t>(lost.size() - 1, 1), 32);
    const auto end = lost.begin() + static_cast<ptrdiff_t>(rows);
    ASSERT_TRUE(
        harness_->Step({{id_, static_cast<int>(rows), {lost.begin(), end}}})
            .ok());
    lost.erase(lost.begin(), end);
  }
  Run(*cache_, *harness_, id_, kAllTokens);
  auto outputs = harness_->outputs();
  outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(steps),
                outputs.begin() + static_cast<ptrdiff_t>(steps + again));
  EXPECT_EQ(outputs, reference_->outputs());
  EXPECT_EQ(cache_->Scores(id_), full_->Scores(full_id_));
  EXPECT_EQ(cache_->Stats(id_).lost_score_collections, 0);
}

TEST_F(PushdownLostRowsTest, AreNotEnoughWhereScoresAreLostWithThem) {
  EXPECT_THAT(LoseNode(), IsEmpty());
  EXPECT_EQ(cache_->Stats(id_).lost_score_collections, 0);
}

// It has the session again, opened anew, and would answer that it gathered
// nothing. Nobody has asked for a row before the cache is told.
TEST_F(PushdownLostRowsTest, AreNotEnoughWhereTheNodeCameBackWithoutScores) {
  NodeOptions options = InProcessNodeOptions("n0");
  options.listen = "127.0.0.1:" + std::to_string(nodes_[0]->ports().listen);
  nodes_[0] = nullptr;
  nodes_[0] = StartInProcessNode(options, nullptr).value();
  absl::Notification never;
  for (int i = 0; i < 6000 && cache_->Stats(id_).lost_score_collections == 0;
       ++i) {
    never.WaitForNotificationWithTimeout(absl::Milliseconds(5));
    cache_->Park(id_);
  }
  ASSERT_EQ(cache_->Stats(id_).lost_score_collections, 1);

  absl::Status status;
  for (int i = 0; i < 5 && !absl::IsUnavailable(status); ++i) {
    status = harness_->Step(id_, 1);
  }

  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(cache_->GiveUpLostRows(id_), IsEmpty());
}

}  // namespace
}  // namespace farkv
