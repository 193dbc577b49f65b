// Collecting scores from nodes that do not give them.
#include <memory>
#include <vector>

#include "common/async/thread_executor.h"
#include "gpu_worker/tiering/node_pause.h"
#include "gpu_worker/tiering/pushdown.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

class CollectScoresTest : public ::testing::Test {
 protected:
  CollectScoresTest() {
    options_.cold = ColdMode::kPushdown;
    options_.lease = absl::Hours(4);
    options_.heartbeat = absl::Hours(1);  // nothing else is sent
    NodeLinkOptions options;
    options.address = "0";
    options.tiering = options_;
    options.geometry = TestGeometry();
    options.executor = &executor_;
    options.inbox = &inbox_;
    links_.push_back(
        NodeLink::Connect(std::move(options), AccessTo(network_, {&node_}))
            .value());
  }
  ~CollectScoresTest() override { links_.front()->Stop(); }

  // A sequence to whose first page the node has attended.
  static std::unique_ptr<Sequence> Attended(uint64_t id) {
    auto sequence = std::make_unique<Sequence>(
        SequenceId{id}, TestSpec(64, 10, 1000), 16, TestGeometry(), 64);
    const std::vector<float> numbers(kQueryHeads, 1.0f);
    sequence->pushdown.pages[0] = {0};
    sequence->pushdown.globals[0].assign(3, {1, numbers, numbers});
    return sequence;
  }

  TieringOptions options_;
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode node_{network_, TestGeometry(), "node"};  // knows no scores
  Inbox inbox_;
  std::vector<std::unique_ptr<NodeLink>> links_;
  // Ends before the link: callbacks that it still runs refer to it.
  ThreadExecutor executor_{1};
};

TEST_F(CollectScoresTest, ANodeThatFailsOneSequenceIsNotAskedForTheOthers) {
  ManualClock clock;
  Pushdown pushdown(options_, TestGeometry(), kQueryHeads, links_, clock);
  const auto first = Attended(1);
  const auto second = Attended(2);

  pushdown.CollectScores(*first);
  const uint64_t sent = links_.front()->Stats().requests_sent;
  pushdown.CollectScores(*second);

  EXPECT_EQ(sent, 2u);  // with its repetition
  EXPECT_EQ(links_.front()->Stats().requests_sent, sent);
  EXPECT_EQ(first->stats.lost_score_collections, 1);
  EXPECT_EQ(second->stats.lost_score_collections, 1);
  EXPECT_TRUE(second->pushdown.pages.empty());
  EXPECT_FALSE(pushdown.Nodes()[0]);  // nor to attend
  clock.Advance(NodePause::kFirst);
  EXPECT_TRUE(pushdown.Nodes()[0]);
}

TEST(NodePauseTest, EachFailureDoublesItAndASuccessEndsThat) {
  NodePause pause;
  absl::Time now = absl::UnixEpoch();
  const auto fail = [&] {
    pause.Failed(now);
    pause.Failed(now);  // the same trouble
    const absl::Time start = now;
    while (!pause.Over(now)) now += absl::Seconds(1);
    return now - start;
  };

  EXPECT_TRUE(pause.Over(now));
  EXPECT_EQ(fail(), absl::Seconds(5));
  EXPECT_EQ(fail(), absl::Seconds(10));
  EXPECT_EQ(fail(), absl::Seconds(20));
  for (int i = 0; i < 5; ++i) fail();
  EXPECT_EQ(fail(), NodePause::kLongest);
  pause.Succeeded();
  EXPECT_EQ(fail(), absl::Seconds(5));
}

}  // namespace
}  // namespace farkv
