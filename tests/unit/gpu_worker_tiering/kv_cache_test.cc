// The cache without nodes, and what a node's faults do to it.
#include "gpu_worker/tiering/kv_cache.h"

#include <stdlib.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "test_node.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(20);

class KvCacheTest : public testing::Test {
 protected:
  static TieringOptions Options() {
    TieringOptions options;
    options.granularity = 16;
    options.t0_bytes = uint64_t{1} << 20;
    // A busy machine may keep a node from answering for a while; only tests of
    // lost nodes want to know soon.
    options.heartbeat = absl::Seconds(5);
    options.rpc_timeout = absl::Seconds(5);
    return options;
  }

  // A cache over `nodes`; none: the full cache.
  std::unique_ptr<KvCache> Make(TieringOptions options,
                                std::vector<TestNode*> nodes) {
    options.memory_nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      options.memory_nodes.push_back(std::to_string(i));
    }
    return KvCache::CreateWith(options, geometry_, kQueryHeads, *device_,
                               AccessTo(network_, std::move(nodes)))
        .value();
  }

  // A sequence of `tokens` with cold rows, all stores done.
  SequenceId MakeCold(KvCache& cache, Harness& harness, int tokens,
                      const char* name = "request") {
    const SequenceId id =
        cache.Open(TestSpec(16, 20, tokens + 100, name)).value();
    EXPECT_TRUE(harness.Step(id, 20).ok());
    for (int i = 20; i < tokens; ++i) {
      EXPECT_TRUE(harness.Step(id, 1).ok());
      EXPECT_TRUE(cache.Drain(kLong).ok());
    }
    EXPECT_GT(cache.Stats(id).t1_tokens, 0);
    return id;
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
};

TEST_F(KvCacheTest, DiscardLeavesNoTrace) {
  auto cache = Make(Options(), {});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 200)).value();
  ASSERT_TRUE(harness.Step(id, 70).ok());
  const auto scores = cache->Scores(id);
  const uint64_t used = cache->t0_usage().used_bytes;

  const StepRows rows[] = {{id, 60}};
  ASSERT_TRUE(cache->Begin(rows, *stream_).ok());
  const LayerView view = cache->PrepareLayer(0).value();
  view.sequences[0].scores[3] += 12345;
  cache->Discard();

  EXPECT_EQ(cache->num_tokens(id), 70);
  EXPECT_EQ(cache->Scores(id), scores);
  EXPECT_EQ(cache->t0_usage().used_bytes, used);
  EXPECT_EQ(cache->TierMap(id).size(), 2u);
}

TEST_F(KvCacheTest, AStepAfterADiscardHasTheSameBits) {
  auto cache = Make(Options(), {});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 200)).value();
  auto other = Make(Options(), {});
  Harness plain(*other, *stream_, geometry_);
  const SequenceId other_id = other->Open(TestSpec(16, 20, 200)).value();
  for (int i = 0; i < 100; ++i) {
    const StepRows rows[] = {{id, 33}};
    ASSERT_TRUE(cache->Begin(rows, *stream_).ok());
    cache->Discard();
    ASSERT_TRUE(harness.Step(id, 1).ok());
    ASSERT_TRUE(plain.Step(other_id, 1).ok());
  }

  EXPECT_EQ(harness.outputs(), plain.outputs());
  EXPECT_EQ(cache->Scores(id), other->Scores(other_id));
}

TEST_F(KvCacheTest, ASequenceThatCanNeverFitIsRefusedForGood) {
  auto cache = Make(Options(), {});

  const auto id = cache->Open(TestSpec(16, 20, 1000000));

  EXPECT_EQ(id.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(id.status().message().find("1000000 tokens"),
            absl::string_view::npos);
}

TEST_F(KvCacheTest, ASequenceWaitsForRoomUntilAnotherCloses) {
  TieringOptions options = Options();
  options.t0_bytes = 10 * 3 * geometry_.BlockBytes(16);
  auto cache = Make(options, {});
  const SequenceId first = cache->Open(TestSpec(16, 20, 100)).value();

  EXPECT_EQ(cache->Open(TestSpec(16, 20, 100)).status().code(),
            absl::StatusCode::kResourceExhausted);
  cache->Close(first);
  EXPECT_TRUE(cache->Open(TestSpec(16, 20, 100)).ok());
}

TEST_F(KvCacheTest, WrongCallsAreRefusedWithoutHarm) {
  auto cache = Make(Options(), {});
  const SequenceId id = cache->Open(TestSpec(16, 20, 100)).value();
  const StepRows unknown[] = {{SequenceId{99}, 1}};
  const StepRows too_many[] = {{id, 101}};
  const StepRows twice[] = {{id, 1}, {id, 1}};

  EXPECT_EQ(cache->Begin(unknown, *stream_).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(cache->Begin(too_many, *stream_).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->Begin(twice, *stream_).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->PrepareLayer(0).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache->Commit().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache->num_tokens(id), 0);
}

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

// Many times: a second reply must not lean on what the first one left.
TEST_F(KvCacheTest, DamagedRepliesAreFetchedAgainWithTheSameBits) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = MakeCold(*cache, harness, 150);
  auto full = Make(Options(), {});
  Harness plain(*full, *stream_, geometry_);
  ASSERT_EQ(full->Open(TestSpec(16, 20, 250)).value(), id);
  ASSERT_TRUE(plain.Step(id, 20).ok());
  for (int i = 20; i < 150; ++i) ASSERT_TRUE(plain.Step(id, 1).ok());

  for (int i = 0; i < 90; ++i) {
    node.DamageFetches(1);
    const absl::Status status = harness.Step(id, 1);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(plain.Step(id, 1).ok());
  }

  // A fetch whose two answers were both hit is asked for anew by a later step.
  const PeerStats peer = cache->Peers()[0];
  EXPECT_GE(peer.damaged_answers, 45u);
  EXPECT_EQ(peer.repeated_fetches + peer.failed_fetches, peer.damaged_answers);
  EXPECT_EQ(harness.outputs(), plain.outputs());
  EXPECT_EQ(cache->Scores(id), full->Scores(id));
}

TEST_F(KvCacheTest, RowsThatStayDamagedFailTheStepAndNameThePlace) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = MakeCold(*cache, harness, 150);
  const int64_t tokens = cache->num_tokens(id);
  node.DamageFetches(1000000);
  // The rows fetched ahead may have come before the damage.
  absl::Status status;
  for (int i = 0; i < 2 && status.ok(); ++i) status = harness.Step(id, 1);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("node node, layer"), absl::string_view::npos)
      << status;
  EXPECT_NE(status.message().find("CRC32C"), absl::string_view::npos);
  EXPECT_EQ(cache->failed_sequences(), std::vector<SequenceId>{id});
  node.DamageFetches(0);
  EXPECT_TRUE(harness.Step(id, 1).ok());
  EXPECT_LE(cache->num_tokens(id), tokens + 2);
}

// Both replies are whole: nothing but their labels tells that they are wrong.
TEST_F(KvCacheTest, RowsOfAnotherDTypeOrTierFailTheStepAndNameBoth) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = MakeCold(*cache, harness, 150);
  const auto fail = [&](TestNode::FetchEdit edit) {
    node.EditFetches(std::move(edit));
    // The rows fetched ahead may have come before.
    absl::Status status;
    for (int i = 0; i < 2 && status.ok(); ++i) status = harness.Step(id, 1);
    node.EditFetches(nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(harness.Step(id, 1).ok());
    return std::string(status.message());
  };

  const std::string dtype = fail([](FetchReply& reply, auto& rows) {
    reply.geometry.dtype = DType::kF32;
    rows.resize(2 * rows.size());
  });
  const std::string tier = fail([](FetchReply& reply, auto& rows) {
    size_t bytes = 0;
    for (FetchReplyItem& item : reply.items) {
      item.tier = Tier::kT2;
      item.t2_bits = 8;
      item.row_crcs.resize(item.rows.size());
      bytes += item.RowsBytes(reply.geometry);
    }
    rows.resize(bytes);
  });

  EXPECT_THAT(dtype,
              HasSubstr("the reply has rows of 2 KV heads x 16 f32, asked for "
                        "were 2 x 16 bf16"));
  EXPECT_THAT(tier, HasSubstr("the reply is of tier 2, 8 T2 bits, asked for "
                              "was tier 1, 0 T2 bits"));
}

class MappedKvCacheTest : public KvCacheTest {
 protected:
  MappedKvCacheTest() {
    char name[] = "/tmp/farkv-map-XXXXXX";
    map_dir_ = mkdtemp(name);
    node_ =
        std::make_unique<TestNode>(network_, geometry_, "node", 4096, map_dir_);
    TieringOptions options = Options();
    options.map_dir = map_dir_;
    // A slab has a sixth of a lease to be mapped; if it is late, rows are
    // fetched.
    options.lease = absl::Minutes(6);
    options.rpc_timeout = absl::Minutes(2);
    cache_ = Make(options, {node_.get()});
  }
  ~MappedKvCacheTest() override {
    cache_ = nullptr;
    node_ = nullptr;
    rmdir(map_dir_.c_str());
  }

  std::string map_dir_;
  std::unique_ptr<TestNode> node_;
  std::unique_ptr<KvCache> cache_;
};

TEST_F(MappedKvCacheTest, APageGivenAwayDuringAStepDiscardsTheStep) {
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = MakeCold(*cache_, harness, 150);
  ASSERT_TRUE(harness.Step(id, 1).ok());
  ASSERT_EQ(cache_->Stats(id).cold_mode, "map");
  const int64_t tokens = cache_->num_tokens(id);
  const StepRows rows[] = {{id, 1}};
  ASSERT_TRUE(cache_->Begin(rows, *stream_).ok());
  for (int layer = 0; layer < 3; ++layer) {
    ASSERT_TRUE(cache_->PrepareLayer(layer).ok());
  }

  for (int page = 0; page < 2; ++page) node_->GiveAway(1, page);

  EXPECT_EQ(cache_->Commit().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(cache_->num_tokens(id), tokens);
  const absl::Status again = harness.Step(id, 1);
  EXPECT_EQ(again.code(), absl::StatusCode::kAborted);
  EXPECT_NE(again.message().find("generation"), absl::string_view::npos);
  // The node is asked, and says the same.
  EXPECT_EQ(harness.Step(id, 1).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(cache_->failed_sequences(), std::vector<SequenceId>{id});
}

class DamagedMapTest : public MappedKvCacheTest {
 protected:
  // Runs until the first page is stored, damages a row of it, and runs until a
  // step reads it; the status of that step.
  absl::Status RunIntoDamage(Harness& harness, SequenceId id) {
    absl::Status status = harness.Step(id, 20);
    while (status.ok() && cache_->Stats(id).stored_pages < 1) {
      status = harness.Step(id, 1);
      status.Update(cache_->Drain(kLong));
    }
    EXPECT_TRUE(status.ok()) << status;
    node_->DamageRow(2, 0, 1, 40);
    while (status.ok() && cache_->num_tokens(id) < 300) {
      status = harness.Step(id, 1);
    }
    return status;
  }
};

TEST_F(DamagedMapTest, ADamagedRowIsNoticedAtItsFirstUse) {
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(TestSpec(16, 20, 300)).value();

  const absl::Status status = RunIntoDamage(harness, id);

  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer 2, page 0"));
  EXPECT_TRUE(cache_->failed_sequences().empty());
  // What the node sends is no better.
  EXPECT_EQ(harness.Step(id, 1).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(cache_->failed_sequences(), std::vector<SequenceId>{id});
}

TEST_F(DamagedMapTest, APageThatMayNotBeReadInPlaceIsFetched) {
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(TestSpec(16, 20, 300)).value();
  ASSERT_EQ(RunIntoDamage(harness, id).code(), absl::StatusCode::kAborted);

  node_->DamageRow(2, 0, 1, 40);  // the same bit: the row is whole again

  const absl::Status status = harness.Step(id, 1);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(cache_->Stats(id).cold_rows_fetched, 0);
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

TEST_F(KvCacheTest, ClosingGivesEverythingBack) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = MakeCold(*cache, harness, 150);

  cache->Close(id);

  EXPECT_EQ(cache->t0_usage().used_bytes, 0u);
  EXPECT_TRUE(cache->Drain(kLong).ok());
  EXPECT_EQ(node.used_pages(), 0);
  EXPECT_EQ(node.sessions(), 0);
}

TEST_F(KvCacheTest, AParkedSequenceRunsAgainWithTheSameBits) {
  TestNode node(network_, geometry_, "node");
  auto cache = Make(Options(), {&node});
  Harness harness(*cache, *stream_, geometry_);
  auto full = Make(Options(), {});
  Harness plain(*full, *stream_, geometry_);
  const SequenceId id = cache->Open(TestSpec(16, 20, 300)).value();
  const SequenceId full_id = full->Open(TestSpec(16, 20, 300)).value();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(harness.Step(id, 1).ok());
    ASSERT_TRUE(plain.Step(full_id, 1).ok());
    if (i % 70 != 69) continue;
    ASSERT_TRUE(cache->Drain(kLong).ok());
    cache->Park(id);
    EXPECT_LT(cache->Stats(id).t0_tokens, kPageTokens);
  }

  EXPECT_EQ(harness.outputs(), plain.outputs());
  EXPECT_EQ(cache->Scores(id), full->Scores(full_id));
}

TEST_F(KvCacheTest, APlanLeavesItsShareInT0AndNoMore) {
  TestNode node(network_, geometry_, "node");
  TieringOptions options = Options();
  options.granularity = 1;
  auto cache = Make(options, {&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceSpec spec = TestSpec(1, 20, 300);
  const SequenceId id = cache->Open(spec).value();
  ASSERT_TRUE(harness.Step(id, 20).ok());

  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(harness.Step(id, 1).ok());
    ASSERT_TRUE(cache->Drain(kLong).ok());
  }

  const int64_t guarded = 20 + spec.placement.sinks + spec.placement.recent;
  const int64_t planned = guarded + (84 - guarded) * 3 / 10;
  EXPECT_EQ(cache->Stats(id).plans, 2);  // at 48 and 64 generated tokens
  EXPECT_LE(cache->Stats(id).t0_tokens, planned);
  // Promoted rows come in at the beginning of a step; one that is discarded
  // adds no token. Some may be asked for by a later step only.
  const auto arrive = [&](int64_t tokens) {
    const StepRows rows[] = {{id, 1}};
    const absl::Time end = absl::Now() + absl::Seconds(1);
    while (cache->Stats(id).t0_tokens < tokens && absl::Now() < end) {
      EXPECT_TRUE(cache->Begin(rows, *stream_).ok());
      cache->Discard();
    }
    return cache->Stats(id).t0_tokens >= tokens;
  };
  int64_t more = 0;
  while (!arrive(planned + more) && more < 15) {
    ASSERT_TRUE(harness.Step(id, 1).ok());
    ++more;
  }
  EXPECT_EQ(cache->Stats(id).t0_tokens, planned + more);
  const PageTierMap page = cache->TierMap(id).front();
  EXPECT_TRUE(page.stored);
  EXPECT_EQ(page.node_id, "node");
  for (size_t slot = 0; slot < 24; ++slot) {
    EXPECT_EQ(page.tiers[slot], Tier::kT0) << slot;
  }
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
