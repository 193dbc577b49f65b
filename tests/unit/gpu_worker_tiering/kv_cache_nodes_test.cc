// Which nodes the cache takes, and where pages go when one is full, drains or
// is lost.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "kv_cache_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

TEST_F(KvCacheTest, ANodeThatCannotBeReachedIsNamed) {
  TieringOptions options = Options();
  options.memory_nodes = {"7"};

  const auto cache = KvCache::CreateWith(options, geometry_, kQueryHeads,
                                         *device_, AccessTo(network_, {}));

  EXPECT_EQ(cache.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(cache.status().message().find("7"), absl::string_view::npos);
}

TEST_F(KvCacheTest, ANodeThatIsGivenTwiceIsRefusedByBothAddresses) {
  TestNode node(network_, geometry_, "node");
  TieringOptions options = Options();
  options.heartbeat = absl::Milliseconds(1);  // one is always on its way
  options.memory_nodes = {"0", "1"};

  const absl::Status status =
      KvCache::CreateWith(options, geometry_, kQueryHeads, *device_,
                          AccessTo(network_, {&node, &node}))
          .status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("twice: 0 and 1"));
}

TEST_F(KvCacheTest, ANodeWithOtherPagesIsRefused) {
  KvGeometry other = geometry_;
  other.head_dim = 64;
  TestNode node(network_, other, "node", 64);
  TieringOptions options = Options();
  options.memory_nodes = {"0"};

  const auto cache = KvCache::CreateWith(options, geometry_, kQueryHeads,
                                         *device_, AccessTo(network_, {&node}));

  EXPECT_EQ(cache.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(cache.status().message().find("page stride"),
            absl::string_view::npos);
}

// An interval is 16 tokens here; no further ahead, as others need the pool.
TEST_F(KvCacheTest, PagesAreReservedOneIntervalAhead) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  ASSERT_TRUE(harness.Step(id, 20).ok());

  for (int tokens = 20; tokens < 200; ++tokens) {
    ASSERT_TRUE(cache->Drain(kLong).ok());
    const int pages = (tokens + 16) / kPageTokens + 1;
    EXPECT_EQ(node.used_pages(), pages * geometry_.num_layers) << tokens;
    ASSERT_TRUE(harness.Step(id, 1).ok());
  }
}

// Two sequences and two nodes make four fetches of each layer.
TEST_F(KvCacheTest, ALateLayerCountsOnceInAStepWhateverItIsMadeOf) {
  TestNode a(network_, geometry_, "a"), b(network_, geometry_, "b");
  TieringOptions options = Options();
  options.stripe_tokens = 64;
  options.spread = true;
  auto cache = Make(options, {&a, &b});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId ids[] = {cache->Open(TestSpec(16, 20, 400, "x")).value(),
                            cache->Open(TestSpec(16, 20, 400, "y")).value()};
  ASSERT_TRUE(harness.Step({{ids[0], 20}, {ids[1], 20}}).ok());
  while (cache->num_tokens(ids[0]) < 300) {
    ASSERT_TRUE(harness.Step({{ids[0], 1}, {ids[1], 1}}).ok());
    ASSERT_TRUE(cache->Drain(kLong).ok());
  }
  std::atomic<int> fetches = 0;
  for (TestNode* node : {&a, &b}) {
    node->EditFetches([&fetches](FetchReply&, std::vector<std::byte>&) {
      ++fetches;
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    });
  }
  // Some rows of this step were asked for before.
  ASSERT_TRUE(harness.Step({{ids[0], 1}, {ids[1], 1}}).ok());
  const int64_t before = cache->late_layers();
  const int64_t of_x = cache->Stats(ids[0]).late_fetches;

  ASSERT_TRUE(harness.Step({{ids[0], 1}, {ids[1], 1}}).ok());

  // What was asked for ahead is still answered; not with the count below.
  for (TestNode* node : {&a, &b}) node->EditFetches(nullptr);
  ASSERT_GE(fetches, 4 * geometry_.num_layers);
  EXPECT_GT(cache->late_layers(), before);
  EXPECT_LE(cache->late_layers(), before + geometry_.num_layers);
  EXPECT_LE(cache->Stats(ids[0]).late_fetches, of_x + geometry_.num_layers);
}

TEST_F(KvCacheTest, RandomPlacementFollowsTheRequestAndNotItsSession) {
  // After the first plan, which finds all rows in T0.
  const auto tiers_of = [this](const char* request) {
    TestNode node(network_, geometry_, "node");
    auto cache = Make(Options(), {&node});
    Harness harness(*cache, *stream_, geometry_);
    SequenceSpec spec = TestSpec(16, 20, 400, request);
    spec.placement.policy = PlacementPolicy::kRandom;
    spec.placement.interval = 256;
    const SequenceId id = cache->Open(spec).value();
    EXPECT_TRUE(harness.Step(id, 20).ok());
    for (int i = 0; i < 256; ++i) EXPECT_TRUE(harness.Step(id, 1).ok());
    EXPECT_TRUE(cache->Drain(kLong).ok());
    EXPECT_EQ(cache->Stats(id).plans, 1);
    std::vector<Tier> tiers;
    for (const PageTierMap& page : cache->TierMap(id)) {
      tiers.insert(tiers.end(), page.tiers.begin(), page.tiers.end());
    }
    return tiers;
  };

  EXPECT_EQ(tiers_of("a"), tiers_of("a"));
  EXPECT_NE(tiers_of("a"), tiers_of("b"));
}

// The node has no room for a page of all three layers: nothing is ever stored.
TEST_F(KvCacheTest, AFullNodeOnlyMeansThatMoreStaysInT0) {
  TestNode node(network_, geometry_, "node", 2);
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 300)).value();
  ASSERT_TRUE(harness.Step(id, 20).ok());

  for (int i = 20; i < 200; ++i) ASSERT_TRUE(harness.Step(id, 1).ok());

  EXPECT_EQ(cache->Drain(absl::Milliseconds(50)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cache->Stats(id).t0_tokens, 200);
}

TEST_F(KvCacheTest, AT0ThatIsFullForWantOfANodesRoomSaysSo) {
  TestNode node(network_, geometry_, "node", 2);
  TieringOptions options = Options();
  options.t0_bytes = uint64_t{15} * 3 * geometry_.BlockBytes(16);
  auto cache = Make(options, {&node});
  Harness harness(*cache, *stream_, geometry_);
  SequenceSpec spec = TestSpec(16, 20, 400);
  spec.placement.hbm_ratio = 0;
  harness.room_wait = absl::Seconds(1);
  const SequenceId id = cache->Open(spec).value();
  absl::Status status = harness.Step(id, 20);

  while (status.ok() && cache->num_tokens(id) < 400) {
    status = harness.Step(id, 1);
  }

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("memory node node (0) takes no page: the pool is full"));
}

// Its data plane answers, its control plane does no more.
TEST_F(KvCacheTest, ANodeThatOpensNoSessionIsPassedOverForAnother) {
  TestNode silent(network_, geometry_, "silent");
  TestNode other(network_, geometry_, "other");
  TieringOptions options = Options();
  options.memory_nodes = {"0", "1"};
  NodeAccess access = AccessTo(network_, {&silent, &other});
  access.control = [make = access.control](const std::string& address) {
    auto calls = make(address);
    if (address != "0" || !calls.ok()) return calls;
    calls->open_session =
        [open = calls->open_session, calls = 0](
            const OpenSessionCall& call,
            absl::Duration timeout) mutable -> absl::StatusOr<SessionGrant> {
      if (calls++ == 0) return open(call, timeout);  // the link's own
      return absl::DeadlineExceededError("no answer");
    };
    return calls;
  };
  auto cache =
      KvCache::CreateWith(options, geometry_, kQueryHeads, *device_, access)
          .value();
  Harness harness(*cache, *stream_, geometry_);

  // As many as are needed for both orders of the nodes.
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    MakeCold(*cache, harness, 150, name);
  }

  EXPECT_EQ(other.stored_pages(), 6 * 2 * geometry_.num_layers);
}

TEST_F(KvCacheTest, AFullNodeIsPassedOverForAnother) {
  TestNode small(network_, geometry_, "small", 3);
  TestNode large(network_, geometry_, "large");
  auto cache = Make(Options(), {&small, &large});
  Harness harness(*cache, *stream_, geometry_);

  for (int i = 0; i < 4; ++i) MakeCold(*cache, harness, 150);

  EXPECT_EQ(large.stored_pages() + small.stored_pages(), 4 * 2 * 3);
}

// Sequences of either order of preference; those that prefer the other node
// never ask the one that drains.
TEST_F(KvCacheTest, ADrainingNodeWithoutTheirSessionsIsPassedOver) {
  TestNode draining(network_, geometry_, "draining");
  TestNode other(network_, geometry_, "other");
  auto cache = Make(Options(), {&draining, &other});
  Harness harness(*cache, *stream_, geometry_);
  draining.SetDraining(true);

  for (int i = 0; i < 4; ++i) MakeCold(*cache, harness, 150);

  EXPECT_EQ(draining.sessions(), 0);
  EXPECT_EQ(other.stored_pages(), 4 * 2 * 3);
}

// Its pages of the first 150 tokens lie on the draining node, which reserves
// once more and says so.
TEST_F(KvCacheTest, ADrainingNodeServesASequenceWhoseNewPagesGoElsewhere) {
  TestNode draining(network_, geometry_, "draining");
  TestNode other(network_, geometry_, "other");
  auto cache = Make(Options(), {&draining, &other});
  Harness harness(*cache, *stream_, geometry_);
  SequenceId id;
  do {
    id = cache->Open(TestSpec(16, 20, 500)).value();
    ASSERT_TRUE(harness.Step(id, 150).ok());
    ASSERT_TRUE(cache->Drain(kLong).ok());
    if (draining.sessions() == 0) cache->Close(id);
  } while (draining.sessions() == 0);
  draining.SetDraining(true);

  for (int i = 150; i < 420; ++i) {
    ASSERT_TRUE(harness.Step(id, 1).ok());
    ASSERT_TRUE(cache->Drain(kLong).ok());
  }

  EXPECT_LE(draining.stored_pages(), 4 * 3);
  EXPECT_EQ(draining.stored_pages() + other.stored_pages(), 6 * 3);
  EXPECT_GT(cache->Stats(id).cold_rows_fetched, 0);
}

TEST_F(KvCacheTest, ADrainingNodeAloneServesWhatRunsAndWhatIsRestarted) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  ASSERT_TRUE(harness.Step(id, 70).ok());
  ASSERT_TRUE(cache->Drain(kLong).ok());
  node.SetDraining(true);

  ASSERT_TRUE(harness.Step(id, 130).ok());
  ASSERT_TRUE(cache->Drain(kLong).ok());
  EXPECT_EQ(node.stored_pages(), 3 * 3);
  id = cache->Restart(id, SessionId::Random());
  ASSERT_TRUE(harness.Step(id, 300).ok());
  ASSERT_TRUE(cache->Drain(kLong).ok());

  EXPECT_EQ(node.stored_pages(), 4 * 3);
}

TEST_F(KvCacheTest, ANodeThatDrainsNoMoreIsUsedAgain) {
  TestNode node(network_, geometry_, "node");
  TieringOptions options = Options();
  options.lease = absl::Seconds(10);  // a third of it until it is asked again
  auto cache = Make(options, {&node});
  Harness harness(*cache, *stream_, geometry_);
  node.SetDraining(true);
  const SequenceId id = cache->Open(TestSpec(16, 20, 400)).value();
  ASSERT_TRUE(harness.Step(id, 70).ok());
  EXPECT_FALSE(cache->Drain(absl::Milliseconds(50)).ok());
  EXPECT_EQ(node.sessions(), 0);

  node.SetDraining(false);

  EXPECT_TRUE(cache->Drain(kLong).ok());
  EXPECT_EQ(node.stored_pages(), 3);
}

TEST_F(KvCacheTest, ALostNodeFailsOnlyWhatIsColdOnIt) {
  auto node = std::make_unique<TestNode>(network_, geometry_, "node");
  TieringOptions options = Options();
  options.heartbeat = absl::Seconds(2);  // so often a lost node is tried again
  auto cache = Make(options, {node.get()});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId cold = MakeCold(*cache, harness, 150);
  const SequenceId warm = cache->Open(TestSpec(16, 20, 100)).value();
  ASSERT_TRUE(harness.Step(warm, 20).ok());

  node->SetDown(true);
  const absl::Time noticed = absl::Now() + kLong;
  while (cache->Peers()[0].healthy) ASSERT_LT(absl::Now(), noticed);

  // The rows fetched ahead may have come before.
  absl::Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = harness.Step(cold, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(harness.Step({{warm, 1}, {cold, 1}}).ok());
  EXPECT_EQ(cache->failed_sequences(), std::vector<SequenceId>{cold});
  EXPECT_TRUE(harness.Step(warm, 1).ok());
  node->SetDown(false);
  // Same epoch, lease not over: its rows are read again.
  const absl::Time end = absl::Now() + kLong;
  do {
    status = harness.Step(cold, 1);
  } while (!status.ok() && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
  cache = nullptr;
}

TEST_F(KvCacheTest, AfterARestartWholePagesAreStoredAgain) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  SequenceSpec spec = TestSpec(16, 200, 300);  // the prompt stays in T0
  const SequenceId id = cache->Open(spec).value();
  ASSERT_TRUE(harness.Step(id, 200).ok());
  ASSERT_TRUE(cache->Drain(kLong).ok());
  ASSERT_EQ(cache->Stats(id).stored_pages, 3);

  node.Restart();

  const absl::Time end = absl::Now() + kLong;
  while (cache->Stats(id).stored_pages < 6 && absl::Now() < end) {
    cache->Drain(absl::Milliseconds(200)).IgnoreError();
  }
  EXPECT_GE(cache->Stats(id).stored_pages, 6);
  EXPECT_EQ(node.stored_pages(), 3 * 3);
}

}  // namespace
}  // namespace farkv
