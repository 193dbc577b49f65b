// What the cache does while a node is lost: rows that only it would have stay
// in T0, a full T0 waits for its return, and whole pages go to another node in
// the end.
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(20);

class LostNodeTest : public ::testing::Test {
 protected:
  static TieringOptions Options() {
    TieringOptions options;
    options.granularity = 16;
    options.t0_bytes = uint64_t{1} << 20;
    options.heartbeat = absl::Milliseconds(500);  // how soon one is tried again
    return options;
  }

  void Open(TieringOptions options, std::vector<TestNode*> nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      options.memory_nodes.push_back(std::to_string(i));
    }
    cache_ = KvCache::CreateWith(options, geometry_, kQueryHeads, *device_,
                                 AccessTo(network_, nodes))
                 .value();
  }

  // Returns when the link to the node numbered `index` has given it up.
  void Lose(TestNode& node, size_t index) {
    node.SetDown(true);
    const absl::Time end = absl::Now() + kLong;
    while (cache_->Peers()[index].healthy) ASSERT_LT(absl::Now(), end);
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  // Before the cache: its links use them.
  TestNode a_{network_, geometry_, "a"};
  TestNode b_{network_, geometry_, "b"};
  std::unique_ptr<KvCache> cache_;
};

TEST_F(LostNodeTest, APlanDropsNothingThatTheLostNodeWouldHaveToGiveBack) {
  Open(Options(), {&a_});
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(TestSpec(16, 20, 400)).value();
  while (cache_->Stats(id).stored_pages < 1) {
    ASSERT_TRUE(harness.Step(id, cache_->num_tokens(id) == 0 ? 20 : 1).ok());
    ASSERT_TRUE(cache_->Drain(kLong).ok());
  }
  ASSERT_EQ(cache_->Stats(id).t1_tokens, 0);  // no plan yet
  ASSERT_EQ(cache_->Stats(id).plans, 0);
  Lose(a_, 0);

  for (int i = 0; i < 40; ++i) {
    const absl::Status status = harness.Step(id, 1);
    ASSERT_TRUE(status.ok()) << i << ": " << status;
  }
  cache_->Park(id);

  EXPECT_GT(cache_->Stats(id).plans, 0);
  EXPECT_GT(cache_->Stats(id).deferred_drops, 0);
  EXPECT_EQ(cache_->Stats(id).t1_tokens, 0);
  EXPECT_TRUE(harness.Step(id, 1).ok());
}

TEST_F(LostNodeTest, WholePagesOfANodeThatStaysAwayGoToTheOther) {
  TieringOptions options = Options();
  options.lease = absl::Seconds(3);
  Open(options, {&a_, &b_});
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(TestSpec(16, 200, 300)).value();
  ASSERT_TRUE(harness.Step(id, 200).ok());
  ASSERT_TRUE(cache_->Drain(kLong).ok());
  const bool in_a = a_.stored_pages() > 0;
  const TestNode& other = in_a ? b_ : a_;

  Lose(in_a ? a_ : b_, in_a ? 0 : 1);

  const absl::Time end = absl::Now() + kLong;
  while (other.stored_pages() < 3 * 3 && absl::Now() < end) {
    cache_->Drain(absl::Milliseconds(200)).IgnoreError();
  }
  EXPECT_EQ(other.stored_pages(), 3 * 3);
  EXPECT_TRUE(harness.Step(id, 1).ok());
}

TEST_F(LostNodeTest, WithoutANodeASequenceIsAdmittedOnlyIfT0HoldsAllOfThem) {
  TieringOptions options = Options();
  options.t0_bytes = 40 * 3 * geometry_.BlockBytes(16);
  Open(options, {&a_});
  ASSERT_TRUE(cache_->Open(TestSpec(16, 20, 320, "running")).ok());
  Lose(a_, 0);

  const absl::Status refused =
      cache_->Open(TestSpec(16, 20, 330, "large")).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("sequence large of 330 tokens needs 126KiB of T0 while "
                        "no memory node answers, running ones 120KiB; "
                        "--t0-bytes gives 240KiB; memory node a (0) is lost"));
  const auto small = cache_->Open(TestSpec(16, 20, 320, "small"));
  ASSERT_TRUE(small.ok()) << small.status();
  cache_->Close(*small);

  a_.SetDown(false);
  const absl::Time end = absl::Now() + kLong;
  while (!cache_->Peers()[0].healthy) ASSERT_LT(absl::Now(), end);
  EXPECT_TRUE(cache_->Open(TestSpec(16, 20, 330, "large")).ok());
}

TEST_F(LostNodeTest, AFullT0WaitsForANodeThatMayComeBack) {
  TieringOptions options = Options();
  const int64_t share = 20 + 4 + 32 + (400 - 56) * 3 / 10 + 64 + 32;
  options.t0_bytes =
      static_cast<uint64_t>(share / 16 + 5 + 2) * 3 * geometry_.BlockBytes(16);
  Open(options, {&a_});
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(TestSpec(16, 20, 400)).value();
  ASSERT_TRUE(cache_->Drain(kLong).ok());
  Lose(a_, 0);
  const StepRows rows[] = {{id, 1}};
  absl::Status status;
  while (cache_->num_tokens(id) < 400) {
    status = cache_->Begin(rows, *stream_);
    cache_->Discard();
    if (!status.ok()) break;
    ASSERT_TRUE(harness.Step(id, 1).ok());
  }
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(cache_->WaitForRoom(absl::ZeroDuration()));

  a_.SetDown(false);

  const absl::Time end = absl::Now() + kLong;
  do {
    ASSERT_TRUE(cache_->WaitForRoom(kLong));
    status = cache_->Begin(rows, *stream_);
  } while (!status.ok() && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
  cache_->Discard();
}

}  // namespace
}  // namespace farkv
