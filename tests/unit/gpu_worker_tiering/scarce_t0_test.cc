// A cache whose T0 is full until pages have been stored.
#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "kv_cache_fixture.h"

namespace farkv {
namespace {

TEST_F(KvCacheTest, RefusedStoresAreTriedAgainAndDropsAreDeferred) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 300)).value();
  node.RefuseStores(1 << 20);
  ASSERT_TRUE(harness.Step(id, 20).ok());
  for (int i = 20; i < 200; ++i) ASSERT_TRUE(harness.Step(id, 1).ok());
  const absl::Time end = absl::Now() + kLong;
  while (cache->Peers()[0].failed_stores == 0 && absl::Now() < end) {
    cache->Drain(absl::Milliseconds(10)).IgnoreError();
  }
  EXPECT_EQ(cache->Stats(id).t0_tokens, 200);

  node.RefuseStores(0);
  EXPECT_TRUE(cache->Drain(kLong).ok());

  const SequenceTierStats stats = cache->Stats(id);
  EXPECT_EQ(stats.stored_pages, 3);
  EXPECT_EQ(node.stored_pages(), 9);
  EXPECT_GE(cache->Peers()[0].failed_stores, 1u);
  EXPECT_GT(stats.deferred_drops, 0);
  EXPECT_GT(stats.t1_tokens, 0);  // dropped once they were stored
}

// T0 of one sequence's share and little more.
class ScarceKvCacheTest : public KvCacheTest {
 protected:
  std::unique_ptr<KvCache> MakeScarce(std::vector<TestNode*> nodes,
                                      TieringOptions options = Options()) {
    const int64_t share = 20 + 4 + 32 + (400 - 56) * 3 / 10 + 64 + 32;
    options.t0_bytes = static_cast<uint64_t>(share / 16 + 5 + 2) * 3 *
                       geometry_.BlockBytes(16);
    return Make(options, std::move(nodes));
  }

  // Runs until T0 is full, without waiting; the status that said so.
  absl::Status Fill(KvCache& cache, SequenceId id) {
    Harness harness(cache, *stream_, geometry_);
    absl::Status status;
    for (int i = 0; i < 380 && status.ok(); ++i) {
      const StepRows rows[] = {{id, 1}};
      status = cache.Begin(rows, *stream_);
      cache.Discard();
      if (status.ok()) status = harness.Step(id, 1);
    }
    return status;
  }
};

TEST_F(ScarceKvCacheTest, AStoreThatIsTriedAgainMakesRoom) {
  TestNode node(network_, geometry_, "node");
  auto cache = MakeScarce({&node});
  const SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  node.RefuseStores(1 << 20);
  ASSERT_EQ(Fill(*cache, id).code(), absl::StatusCode::kResourceExhausted);

  node.RefuseStores(0);

  const absl::Time end = absl::Now() + kLong;
  const StepRows rows[] = {{id, 1}};
  absl::Status status;
  do {
    ASSERT_TRUE(cache->WaitForRoom(kLong));
    status = cache->Begin(rows, *stream_);
  } while (!status.ok() && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
  cache->Discard();
}

// Stores that hang for their whole timeout cost a step nothing.
TEST_F(ScarceKvCacheTest, AStepThatFindsT0FullSaysSoAtOnce) {
  TieringOptions options = Options();
  options.rpc_timeout = absl::Minutes(2);
  TestNode node(network_, geometry_, "node");
  auto cache = MakeScarce({&node}, options);
  const SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  ASSERT_TRUE(cache->Drain(kLong).ok());
  network_.SetFrozen(node.port(), true);
  const absl::Cleanup thaw = [&] { network_.SetFrozen(node.port(), false); };
  ASSERT_EQ(Fill(*cache, id).code(), absl::StatusCode::kResourceExhausted);

  const absl::Time start = absl::Now();
  const StepRows rows[] = {{id, 1}};
  EXPECT_EQ(cache->Begin(rows, *stream_).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(cache->WaitForRoom(absl::ZeroDuration()));
  EXPECT_LT(absl::Now() - start, options.rpc_timeout / 2);
}

TEST_F(ScarceKvCacheTest, WhereNothingIsToComeNobodyWaits) {
  auto alone = MakeScarce({});
  EXPECT_FALSE(alone->WaitForRoom(absl::InfiniteDuration()));

  TestNode node(network_, geometry_, "node");
  auto cache = MakeScarce({&node});
  const SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  Harness harness(*cache, *stream_, geometry_);
  for (int rows : {20, 64, 64}) ASSERT_TRUE(harness.Step(id, rows).ok());
  ASSERT_TRUE(cache->Drain(kLong).ok());
  // Stores have ended; what the node's thread still reports is an event, too.
  EXPECT_TRUE(cache->WaitForRoom(absl::ZeroDuration()));
  const absl::Time end = absl::Now() + kLong;
  while (cache->WaitForRoom(absl::ZeroDuration())) {
    ASSERT_LT(absl::Now(), end);
  }
  EXPECT_FALSE(cache->WaitForRoom(absl::InfiniteDuration()));
}

TEST_F(KvCacheTest, APromptLargerThanT0ComesInWhileItsPagesLeave) {
  TestNode node(network_, geometry_, "node");
  TieringOptions options = Options();
  options.t0_bytes = 400 / 16 * 3 * geometry_.BlockBytes(16);
  auto cache = Make(options, {&node});
  Harness harness(*cache, *stream_, geometry_);
  auto full = Make(Options(), {});
  Harness plain(*full, *stream_, geometry_);
  SequenceSpec spec = TestSpec(16, 800, 900);
  spec.placement.prompt_in_t0 = false;
  spec.placement.hbm_ratio = 1000;
  const SequenceId id = cache->Open(spec).value();
  ASSERT_EQ(full->Open(spec).value(), id);

  for (int rows : {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 32, 1, 1}) {
    const absl::Status status = harness.Step(id, rows);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(plain.Step(id, rows).ok());
  }

  EXPECT_EQ(harness.outputs(), plain.outputs());
  EXPECT_EQ(cache->Scores(id), full->Scores(id));
}

TEST_F(KvCacheTest, ScarceT0ChangesNoBitOfABatch) {
  TestNode node(network_, geometry_, "node");
  TieringOptions options = Options();
  const int64_t share = 20 + 4 + 32 + (400 - 56) * 3 / 10 + 64 + 32;
  options.t0_bytes = static_cast<uint64_t>(2 * (share / 16 + 5) + 2) * 3 *
                     geometry_.BlockBytes(16);
  auto cache = Make(options, {&node});
  Harness harness(*cache, *stream_, geometry_);
  auto full = Make(Options(), {});
  Harness plain(*full, *stream_, geometry_);
  const SequenceId a = cache->Open(TestSpec(16, 20, 400, "a")).value();
  const SequenceId b = cache->Open(TestSpec(16, 20, 400, "b")).value();
  ASSERT_EQ(full->Open(TestSpec(16, 20, 400)).value(), a);
  ASSERT_EQ(full->Open(TestSpec(16, 20, 400)).value(), b);
  ASSERT_TRUE(harness.Step({{a, 20}, {b, 20}}).ok());
  ASSERT_TRUE(plain.Step({{a, 20}, {b, 20}}).ok());

  for (int i = 20; i < 400; ++i) {
    const absl::Status status = harness.Step({{a, 1}, {b, 1}});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(plain.Step({{a, 1}, {b, 1}}).ok());
  }

  EXPECT_EQ(harness.outputs(), plain.outputs());
  EXPECT_LE(cache->t0_usage().used_bytes, options.t0_bytes);
  ASSERT_TRUE(cache->Drain(kLong).ok());
  EXPECT_GT(cache->Stats(a).t1_tokens, 100);
}

}  // namespace
}  // namespace farkv
