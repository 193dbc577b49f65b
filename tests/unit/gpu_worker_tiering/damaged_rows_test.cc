// What the cache does about damaged rows, fetched or mapped, and about pages
// that are given away while they are read.
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gpu_worker/tiering/kv_cache.h"
#include "gtest/gtest.h"
#include "kv_cache_fixture.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

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

// Boottime() as far ahead as a test puts it.
class ClockAhead final : public Clock {
 public:
  absl::Time Now() const override { return Clock::Boottime().Now() + by_; }
  void Set(absl::Duration by) { by_ = by; }

 private:
  absl::Duration by_;
};

class MappedKvCacheTest : public KvCacheTest {
 protected:
  MappedKvCacheTest() {
    char name[] = "/tmp/farkv-map-XXXXXX";
    map_dir_ = mkdtemp(name);
    node_ =
        std::make_unique<TestNode>(network_, geometry_, "node", 4096, map_dir_);
    TieringOptions options = Options();
    options.map_dir = map_dir_;
    options.cold = ColdMode::kAuto;
    // A slab has a sixth of a lease to be mapped; if it is late, rows are
    // fetched.
    options.lease = absl::Minutes(6);
    options.rpc_timeout = absl::Minutes(2);
    options.memory_nodes = {"0"};
    NodeAccess access = AccessTo(network_, {node_.get()});
    access.clock = &clock_;  // of the reads, not of the link
    cache_ =
        KvCache::CreateWith(options, geometry_, kQueryHeads, *device_, access)
            .value();
  }
  ~MappedKvCacheTest() override {
    cache_ = nullptr;
    node_ = nullptr;
    rmdir(map_dir_.c_str());
  }

  // A sequence whose last step read cold rows through the map; another one has
  // begun and has had its rows of `layers` layers.
  SequenceId MidStep(Harness& harness, int layers) {
    const SequenceId id = MakeCold(*cache_, harness, 150);
    EXPECT_TRUE(harness.Step(id, 1).ok());
    EXPECT_EQ(cache_->Stats(id).cold_mode, "map");
    const StepRows rows[] = {{id, 1}};
    EXPECT_TRUE(cache_->Begin(rows, *stream_).ok());
    for (int layer = 0; layer < layers; ++layer) {
      EXPECT_TRUE(cache_->PrepareLayer(layer).ok());
    }
    return id;
  }

  std::string map_dir_;
  ClockAhead clock_;
  std::unique_ptr<TestNode> node_;
  std::unique_ptr<KvCache> cache_;
};

TEST_F(MappedKvCacheTest, APageGivenAwayDuringAStepDiscardsTheStep) {
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = MidStep(harness, 3);
  const int64_t tokens = cache_->num_tokens(id) - 1;  // before the step

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

// The node may give a page away once its lease is over, so a reader asks its
// own clock before and after it reads in place.
TEST_F(MappedKvCacheTest, ALeaseThatEndsBeforeALayerIsReadDiscardsTheStep) {
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = MidStep(harness, 1);

  clock_.Set(absl::Minutes(6));

  const absl::Status status = cache_->PrepareLayer(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the lease is over"));
  cache_->Discard();
  // The node is asked, and its lease holds still.
  EXPECT_TRUE(harness.Step(id, 1).ok());
  EXPECT_EQ(cache_->Stats(id).cold_mode, "prefetch");
}

TEST_F(MappedKvCacheTest, ALeaseThatEndsWhileLayersAreReadDiscardsTheStep) {
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = MidStep(harness, 3);
  const int64_t tokens = cache_->num_tokens(id) - 1;  // before the step

  clock_.Set(absl::Minutes(6));

  const absl::Status status = cache_->Commit();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("its lease changed"));
  EXPECT_EQ(cache_->num_tokens(id), tokens);
  EXPECT_TRUE(harness.Step(id, 1).ok());
  EXPECT_EQ(cache_->Stats(id).cold_mode, "prefetch");
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

}  // namespace
}  // namespace farkv
