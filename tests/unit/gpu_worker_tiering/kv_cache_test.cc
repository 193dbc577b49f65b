// The cache without nodes; what closing, parking and plans do.
#include "gpu_worker/tiering/kv_cache.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kv_cache_fixture.h"

namespace farkv {
namespace {

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

}  // namespace
}  // namespace farkv
