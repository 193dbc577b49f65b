// Pushdown against whole memory nodes over UCX: the same bits of outputs and
// scores as with everything in T0; and what happens when nodes do not attend.
#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/page/attend_limits.h"
#include "gpu_worker/tiering/attend_reply_check.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "test_node.h"
#include "tests/testing/in_process_node.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr int64_t kPrompt = 150;
constexpr int64_t kTotal = 420;

struct Case {
  int granularity;
  int num_nodes;
  bool prompt_in_t0;
  DType dtype = DType::kBf16;
  const char* device = "cpu";
  int query_heads = kQueryHeads;  // over two KV heads
  size_t leaves_per_request = 0;  // 0: any number
};

TieringOptions Options(int granularity) {
  TieringOptions options;
  options.granularity = granularity;
  options.t0_bytes = uint64_t{1} << 20;
  options.heartbeat = absl::Seconds(5);
  options.cold = ColdMode::kPushdown;
  options.stripe_tokens = 64;
  options.spread = true;
  return options;
}

// Every store is awaited, so that drops become certain. A step that is
// discarded is repeated, as an engine does.
void Generate(KvCache& cache, SequenceId id, Harness& harness) {
  for (int64_t done = 0; done < kPrompt; done += 50) {
    ASSERT_TRUE(harness.Step(id, 50).ok());
    ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
  }
  for (int64_t i = kPrompt; i < kTotal; ++i) {
    absl::Status status = harness.Step(id, 1);
    for (int tries = 1; absl::IsAborted(status) && tries < 5; ++tries) {
      status = harness.Step(id, 1);
    }
    ASSERT_TRUE(status.ok()) << status;
    if (i % 8 != 0) continue;
    ASSERT_TRUE(cache.Drain(absl::Seconds(20)).ok());
  }
}

class PushdownTest : public ::testing::TestWithParam<Case> {};

TEST_P(PushdownTest, ChangesNoBitOfOutputsAndScores) {
  const Case& given = GetParam();
  const KvGeometry geometry = TestGeometry(given.dtype);
  ThreadPool pool(1);
  const auto device = OpenDevice(given.device, pool).value();
  const std::unique_ptr<Stream> stream = device->NewStream();
  SequenceSpec spec = TestSpec(given.granularity, kPrompt, kTotal);
  spec.placement.prompt_in_t0 = given.prompt_in_t0;
  TieringOptions options = Options(given.granularity);
  auto full =
      KvCache::Create(options, geometry, given.query_heads, *device).value();
  Harness reference(*full, *stream, geometry, given.query_heads);
  const SequenceId full_id = full->Open(spec).value();
  Generate(*full, full_id, reference);

  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < given.num_nodes; ++i) {
    NodeOptions node = InProcessNodeOptions("n" + std::to_string(i));
    if (given.leaves_per_request > 0) {
      node.max_attend_leaf_bytes =
          given.leaves_per_request *
          AttendLeafBytes(given.query_heads, geometry.head_dim);
      options.max_attend_leaf_bytes = node.max_attend_leaf_bytes;
    }
    nodes.push_back(StartInProcessNode(node, nullptr).value());
    options.memory_nodes.push_back(
        "127.0.0.1:" + std::to_string(nodes.back()->ports().listen));
  }
  auto tiered =
      KvCache::Create(options, geometry, given.query_heads, *device).value();
  Harness harness(*tiered, *stream, geometry, given.query_heads);
  const SequenceId id = tiered->Open(spec).value();
  Generate(*tiered, id, harness);

  EXPECT_EQ(harness.outputs(), reference.outputs());
  EXPECT_EQ(tiered->Scores(id), full->Scores(full_id));
  const SequenceTierStats stats = tiered->Stats(id);
  EXPECT_EQ(stats.cold_mode, "pushdown");
  EXPECT_GT(stats.cold_rows_pushed_down, 1000);
  EXPECT_EQ(stats.lost_score_collections, 0);
  EXPECT_EQ(stats.cold_rows_by_node.size(),
            static_cast<size_t>(given.num_nodes));
  for (const auto& [node, rows] : stats.cold_rows_by_node) {
    EXPECT_GT(rows, 0) << node;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PushdownTest,
    ::testing::Values(Case{64, 1, true}, Case{16, 1, false}, Case{1, 1, true},
                      Case{64, 2, false}, Case{1, 2, true},
                      Case{16, 1, true, DType::kF32},
                      Case{16, 2, false, DType::kBf16, "fake"},
                      Case{16, 1, true, DType::kBf16, "cpu", 2},
                      Case{16, 2, true, DType::kF32, "cpu", 6},
                      Case{1, 1, false, DType::kBf16, "cpu", 14},
                      Case{16, 1, true, DType::kBf16, "cpu", 4, 1},
                      Case{16, 1, false, DType::kBf16, "cpu", 4, 3},
                      Case{64, 2, false, DType::kF32, "cpu", 4, 2}),
    [](const ::testing::TestParamInfo<Case>& given) {
      const Case& c = given.param;
      return "Granularity" + std::to_string(c.granularity) + "Nodes" +
             std::to_string(c.num_nodes) +
             (c.prompt_in_t0 ? "" : "PromptAnywhere") +
             (c.dtype == DType::kF32 ? "F32" : "") + "Group" +
             std::to_string(c.query_heads / 2) + "On" + c.device +
             (c.leaves_per_request > 0
                  ? "Leaves" + std::to_string(c.leaves_per_request)
                  : "");
    });

TEST(PushdownFallbackTest, RowsOfANodeThatDoesNotAttendAreFetched) {
  const KvGeometry geometry = TestGeometry();
  ThreadPool pool(1);
  const auto device = OpenDevice("cpu", pool).value();
  const std::unique_ptr<Stream> stream = device->NewStream();
  TieringOptions options = Options(16);
  auto full = KvCache::Create(options, geometry, kQueryHeads, *device).value();
  Harness reference(*full, *stream, geometry);
  Generate(*full, full->Open(TestSpec(16, kPrompt, kTotal)).value(), reference);
  LoopbackNetwork network(LoopbackNetwork::Drive::kThread);
  TestNode node(network, geometry, "node0", 4096);
  options.memory_nodes = {"0"};

  const ManualClock clock;  // the pause of a node that failed has no end
  NodeAccess access = AccessTo(network, {&node});
  access.clock = &clock;
  auto tiered =
      KvCache::CreateWith(options, geometry, kQueryHeads, *device, access)
          .value();
  Harness harness(*tiered, *stream, geometry);
  const SequenceId id = tiered->Open(TestSpec(16, kPrompt, kTotal)).value();
  Generate(*tiered, id, harness);

  EXPECT_EQ(harness.outputs(), reference.outputs());
  EXPECT_EQ(tiered->Stats(id).cold_mode, "prefetch");
  EXPECT_GT(tiered->Stats(id).cold_rows_fetched, 1000);
  EXPECT_EQ(tiered->Stats(id).cold_rows_pushed_down, 0);
}

// A request for pages 2, 3 and 6 of one sequence, and an answer to it.
class AttendReplyCheckTest : public ::testing::Test {
 protected:
  AttendReplyCheckTest() {
    request_.geometry = TestGeometry();
    request_.num_query_heads = kQueryHeads;
    request_.sequences.resize(1);
    for (const int32_t page : {2, 3, 6}) {
      request_.sequences[0].pages.push_back({page, Generation{1}, {}});
    }
    replies_.resize(1);
    replies_[0].subtrees = {Subtree(1, 1), Subtree(0, 6)};
  }
  static AttendSubtree Subtree(uint32_t level, uint32_t index) {
    return {level, index, std::vector<float>(kQueryHeads),
            std::vector<float>(kQueryHeads),
            std::vector<float>(kQueryHeads * 16)};
  }
  absl::Status Check() const { return CheckAttendReply(request_, replies_); }

  AttendRequest request_;
  std::vector<AttendSequenceReply> replies_;
};

TEST_F(AttendReplyCheckTest, SubtreesOverJustThePagesAreTaken) {
  EXPECT_TRUE(Check().ok()) << Check();
  replies_[0].subtrees = {Subtree(0, 2), Subtree(0, 3), Subtree(0, 6)};
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(AttendReplyCheckTest, APageTooFewTooManyOrTwiceIsDataLoss) {
  for (const std::vector<AttendSubtree>& wrong :
       std::vector<std::vector<AttendSubtree>>{
           {Subtree(1, 1)},
           {Subtree(0, 6)},
           {Subtree(1, 1), Subtree(0, 3), Subtree(0, 6)},
           {Subtree(0, 6), Subtree(1, 1)},
           {Subtree(1, 1), Subtree(1, 3)},
           {Subtree(1, 1), Subtree(0, 6), Subtree(0, 7)}}) {
    replies_[0].subtrees = wrong;
    EXPECT_TRUE(absl::IsDataLoss(Check())) << Check();
  }
}

TEST_F(AttendReplyCheckTest, AnotherShapeIsDataLoss) {
  replies_[0].subtrees[1].out.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Check())) << Check();
}

TEST_F(AttendReplyCheckTest, ARefusalNamesItsPage) {
  replies_[0] = {absl::StatusCode::kNotFound, 6, {}};
  EXPECT_TRUE(absl::IsNotFound(Check()));
  EXPECT_NE(std::string(Check().message()).find("page 6"), std::string::npos);
}

}  // namespace
}  // namespace farkv
