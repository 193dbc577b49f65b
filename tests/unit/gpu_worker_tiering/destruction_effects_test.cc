// What follows from destroyed rows: their memory comes back, here and on the
// nodes; nobody asks for them again; an event that cannot read its rows waits.
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "gmock/gmock.h"
#include "gpu_worker/tiering/destruction.h"
#include "gpu_worker/tiering/node_access.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "test_node.h"
#include "tests/testing/in_process_node.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(20);
constexpr int64_t kPrompt = 20;
constexpr int64_t kTotal = 420;

DestructionSettings Fixed(const char* policy, int64_t tokens) {
  DestructionSettings settings;
  settings.policy = **ParseDestructionPolicy(policy);
  settings.budget.kind = BudgetKind::kFixed;
  settings.budget.tokens = tokens;
  return settings;
}

TieringOptions Options(ColdMode cold) {
  TieringOptions options;
  options.granularity = 16;
  options.t0_bytes = uint64_t{1} << 20;
  options.heartbeat = absl::Seconds(5);
  options.fetch_timeout = absl::Seconds(60);  // what fails here fails at once
  options.cold = cold;
  options.stripe_tokens = 64;
  options.spread = true;
  return options;
}

class DestructionEffectsTest : public ::testing::Test {
 protected:
  // A cache over `nodes` of this test; none: the full cache.
  std::unique_ptr<KvCache> Make(std::vector<TestNode*> nodes) {
    TieringOptions options = Options(ColdMode::kPrefetch);
    for (size_t i = 0; i < nodes.size(); ++i) {
      options.memory_nodes.push_back(std::to_string(i));
    }
    return KvCache::CreateWith(options, geometry_, kQueryHeads, *device_,
                               AccessTo(network_, std::move(nodes)))
        .value();
  }

  static SequenceSpec Spec(std::optional<DestructionSettings> destruction) {
    SequenceSpec spec = TestSpec(16, kPrompt, kTotal);
    spec.placement.prompt_in_t0 = false;
    spec.destruction = std::move(destruction);
    return spec;
  }

  // Up to `tokens`, all stores and calls awaited.
  static void Advance(KvCache& cache, Harness& harness, SequenceId id,
                      int64_t tokens) {
    while (cache.num_tokens(id) < tokens) {
      const int rows = cache.num_tokens(id) == 0 ? int{kPrompt} : 1;
      const absl::Status status = harness.Step(id, rows);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(cache.Drain(kLong).ok());
    }
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  const KvGeometry geometry_ = TestGeometry();
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
};

TEST_F(DestructionEffectsTest, PagesWithoutRowsGoBackToTheirNode) {
  TestNode node(network_, geometry_, "node0");
  auto cache = Make({&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(Spec(Fixed("recency", 100))).value();

  Advance(*cache, harness, id, kTotal);

  const SequenceTierStats stats = cache->Stats(id);
  EXPECT_GT(stats.t3_tokens, 200);
  EXPECT_EQ(stats.stored_pages, kTotal / kPageTokens);
  int pages = 0;  // full ones that have a row
  for (const PageLiveRows& page : cache->LiveRows(id)) {
    const bool alive = std::any_of(page.live.begin(), page.live.end(),
                                   [](uint64_t bits) { return bits != 0; });
    if (alive && page.page_index < kTotal / kPageTokens) ++pages;
  }
  EXPECT_LT(pages, 4);
  EXPECT_EQ(node.used_pages(), pages * geometry_.num_layers);
  int dead = 0;
  for (const PageTierMap& page : cache->TierMap(id)) {
    for (const Tier tier : page.tiers) dead += tier == Tier::kT3 ? 1 : 0;
  }
  EXPECT_EQ(dead, stats.t3_tokens);
  EXPECT_EQ(static_cast<int64_t>(cache->LivePositions(id).size()),
            kTotal - dead);
  cache = nullptr;
  EXPECT_EQ(node.used_pages(), 0);
}

TEST_F(DestructionEffectsTest, WithoutNodesTheLinesOfDeadRowsComeBack) {
  auto cache = Make({});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(Spec(Fixed("recency", 100))).value();

  Advance(*cache, harness, id, kTotal);

  const T0Usage usage = cache->t0_usage();
  const uint64_t set_bytes = usage.line_bytes * uint64_t{3};  // layers
  EXPECT_LE(usage.used_bytes / set_bytes, uint64_t{(100 + 64) / 16 + 3});
  cache->Close(id);
  EXPECT_EQ(cache->t0_usage().used_bytes, 0u);
}

TEST_F(DestructionEffectsTest, ARestartDoesNotForgetThatRowsWereDestroyed) {
  auto cache = Make({});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(Spec(Fixed("recency", 100))).value();
  Advance(*cache, harness, id, kTotal);
  ASSERT_GT(cache->Stats(id).destroyed_rows, 0);

  const SequenceId fresh = cache->Restart(id, SessionId::Random());

  EXPECT_EQ(cache->Stats(fresh).destroyed_rows, 0);
  EXPECT_TRUE(cache->Stats(fresh).rows_were_destroyed);
}

TEST_F(DestructionEffectsTest, NobodyAsksForADestroyedRowAgain) {
  TestNode node(network_, geometry_, "node0");
  auto cache = Make({&node});
  Harness harness(*cache, *stream_, geometry_);
  SequenceSpec spec = Spec(Fixed("random", 200));
  auto& random = std::get<RandomPolicy>(spec.destruction->policy);
  random.shared = true;  // all heads lose the same rows
  const SequenceId id = cache->Open(spec).value();
  Advance(*cache, harness, id, 330);
  const int64_t events = cache->Stats(id).evictions;
  ASSERT_GT(events, 0);
  // What was asked for ahead of the event has been dropped by the second step.
  ASSERT_TRUE(harness.Step(id, 1).ok());
  std::vector<uint64_t> alive;
  for (const PageLiveRows& page : cache->LiveRows(id)) {
    alive.push_back(page.live.front());
  }

  absl::Mutex mutex;
  int64_t rows = 0, dead_rows = 0;
  node.EditFetches([&](FetchReply& reply, std::vector<std::byte>&) {
    absl::MutexLock lock(&mutex);
    for (const FetchReplyItem& item : reply.items) {
      for (const uint64_t bitmap : item.rows) {
        rows += std::popcount(bitmap);
        dead_rows += std::popcount(
            bitmap & ~alive[static_cast<size_t>(item.page_index)]);
      }
    }
  });
  ASSERT_TRUE(harness.Step(id, 1).ok());
  node.EditFetches(nullptr);

  EXPECT_EQ(cache->Stats(id).evictions, events);
  absl::MutexLock lock(&mutex);
  EXPECT_GT(rows, 0);
  EXPECT_EQ(dead_rows, 0);
}

TEST_F(DestructionEffectsTest, AnEventThatNobodyWantsIsLeftBetweenTwoLayers) {
  TestNode node(network_, geometry_, "node0");
  auto cache = Make({&node});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(Spec(Fixed("cur-dkv", 200))).value();
  int asked = 0;
  harness.is_moot = [&asked] { return ++asked > 1; };
  while (asked == 0 && cache->num_tokens(id) < kTotal - 1) {
    ASSERT_TRUE(
        harness.Step(id, cache->num_tokens(id) == 0 ? kPrompt : 1).ok());
    ASSERT_TRUE(cache->Drain(kLong).ok());
  }

  EXPECT_EQ(asked, 2);  // before the first layer and before the second
  EXPECT_EQ(cache->Stats(id).evictions, 0);
  EXPECT_EQ(cache->Stats(id).postponed_evictions, 0);
  harness.is_moot = nullptr;
  ASSERT_TRUE(harness.Step(id, 1).ok());
  EXPECT_EQ(cache->Stats(id).evictions, 1);
}

TEST_F(DestructionEffectsTest,
       ADiscardedStepDestroysNothingAndABudgetTooSmallIsRefused) {
  auto cache = Make({});
  Harness harness(*cache, *stream_, geometry_);
  const SequenceId id = cache->Open(Spec(Fixed("streaming-llm", 60))).value();
  Advance(*cache, harness, id, 60);
  const std::vector<PageLiveRows> before = cache->LiveRows(id);
  const StepRows rows[] = {{id, 1}};

  ASSERT_TRUE(cache->Begin(rows, *stream_).ok());
  cache->Discard();

  EXPECT_TRUE(cache->LiveRows(id) == before);
  ASSERT_TRUE(harness.Step(id, 1).ok());
  EXPECT_EQ(cache->Stats(id).evictions, 1);
  const absl::Status refused =
      cache->Open(Spec(Fixed("vase-dkv", 80))).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("a budget of 80 tokens cannot hold"));
}

// Refuses to send fetches of some layers, one bit each, and loses answers to
// stores.
class FussyTransport final : public Transport {
 public:
  FussyTransport(std::unique_ptr<Transport> inner,
                 const std::atomic<uint32_t>& refused_layers,
                 std::atomic<int>& lost_stores)
      : inner_(std::move(inner)),
        refused_layers_(refused_layers),
        lost_stores_(lost_stores) {}

  absl::StatusOr<uint16_t> Listen(const std::string& host,
                                  uint16_t port) override {
    return inner_->Listen(host, port);
  }
  absl::StatusOr<PeerId> Connect(const std::string& host,
                                 uint16_t port) override {
    return inner_->Connect(host, port);
  }
  absl::StatusOr<OperationId> Submit(PeerId peer, Request request,
                                     ReplyCallback callback) override {
    if (request.header.type == MessageType::kFetchRequest &&
        (refused_layers_ >> request.header.layer & 1) != 0) {
      return absl::UnavailableError("no fetches now");
    }
    if (request.header.type == MessageType::kStoreRequest) {
      callback = LosingAnswers(std::move(callback));
    }
    return inner_->Submit(peer, std::move(request), std::move(callback));
  }
  absl::Status Reply(PeerId peer, MessageHeader header,
                     std::vector<BufferLease> body) override {
    return inner_->Reply(peer, header, std::move(body));
  }
  void Cancel(OperationId operation) override { inner_->Cancel(operation); }
  void ClosePeer(PeerId peer) override { inner_->ClosePeer(peer); }
  void Shutdown(absl::Duration grace) override { inner_->Shutdown(grace); }
  TransportCapabilities capabilities() const override {
    return inner_->capabilities();
  }
  TransportCounters counters() const override { return inner_->counters(); }

 private:
  ReplyCallback LosingAnswers(ReplyCallback callback) {
    return [this, callback = std::move(callback)](
               absl::StatusOr<Message> reply) mutable {
      if (reply.ok() && lost_stores_ > 0) {
        --lost_stores_;
        reply = absl::DeadlineExceededError("the answer was lost");
      }
      std::move(callback)(std::move(reply));
    };
  }

  const std::unique_ptr<Transport> inner_;
  const std::atomic<uint32_t>& refused_layers_;
  std::atomic<int>& lost_stores_;
};

// A node of its own, over UCX.
class DestructionOnNodeTest : public DestructionEffectsTest {
 protected:
  void Start(NodeOptions node_options, TieringOptions options) {
    node_ = StartInProcessNode(std::move(node_options), nullptr).value();
    options.memory_nodes = {"127.0.0.1:" +
                            std::to_string(node_->ports().listen)};
    NodeAccess access = MakeNodeAccess(options);
    access.transport = [this, make = access.transport](TransportOptions given)
        -> absl::StatusOr<std::unique_ptr<Transport>> {
      auto inner = make(std::move(given));
      if (!inner.ok()) return inner.status();
      return std::make_unique<FussyTransport>(*std::move(inner),
                                              refused_layers_, lost_stores_);
    };
    access.clock = &clock_;
    access.control =
        [this, make = access.control](
            const std::string& address) -> absl::StatusOr<ControlCalls> {
      auto calls = make(address);
      if (!calls.ok()) return calls.status();
      calls->apply_tier_plan =
          [this, apply = calls->apply_tier_plan](
              const TierPlanCall& call,
              absl::Duration timeout) -> absl::StatusOr<TierPlanResult> {
        auto result = apply(call, timeout);
        const bool tells = !call.evictions.empty() || !call.free.empty();
        if (!tells || lost_answers_ == 0) return result;
        --lost_answers_;
        return absl::UnavailableError("the answer was lost");
      };
      return calls;
    };
    cache_ =
        KvCache::CreateWith(options, geometry_, kQueryHeads, *device_, access)
            .value();
  }

  // The cache without nodes, after as many tokens of the same request.
  std::vector<EvictionRecord> DecisionsOfTheFullCache(const SequenceSpec& spec,
                                                      int64_t tokens) {
    auto full = Make({});
    Harness harness(*full, *stream_, geometry_);
    const SequenceId id = full->Open(spec).value();
    Advance(*full, harness, id, tokens);
    return full->Evictions(id);
  }

  // Rows of all layers and heads that live in full pages, by the worker's
  // table: what the node has to count.
  static uint64_t LiveRowsOfFullPages(const KvCache& cache, SequenceId id) {
    const int64_t pages = cache.num_tokens(id) / kPageTokens;
    uint64_t rows = 0;
    for (const PageLiveRows& page : cache.LiveRows(id)) {
      if (page.page_index >= pages) continue;
      for (const uint64_t live : page.live) {
        rows += static_cast<uint64_t>(std::popcount(live));
      }
    }
    return rows;
  }

  std::atomic<int> lost_answers_{0};  // to be lost, of calls that tell
  static constexpr uint32_t kAllLayers = 7;
  std::atomic<uint32_t> refused_layers_{0};
  std::atomic<int> lost_stores_{0};  // answers to be lost
  ManualClock clock_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<KvCache> cache_;
};

// Attention is pushed down, so only the event reads rows.
TEST_F(DestructionOnNodeTest,
       AnEventWhoseRowsDoNotComeWaitsEachTimeLongerAndDecidesAsItWasDue) {
  Start(InProcessNodeOptions("n0"), Options(ColdMode::kPushdown));
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceSpec spec = Spec(Fixed("vase-attn-v", 192));
  const SequenceId id = cache_->Open(spec).value();
  Advance(*cache_, harness, id, 255);
  ASSERT_GT(cache_->Stats(id).t1_tokens, 0);

  refused_layers_ = kAllLayers;
  Advance(*cache_, harness, id, 256);
  clock_.Advance(NodePause::kFirst);
  Advance(*cache_, harness, id, 257);
  refused_layers_ = 0;
  clock_.Advance(NodePause::kFirst);
  Advance(*cache_, harness, id, 258);

  SequenceTierStats stats = cache_->Stats(id);
  EXPECT_EQ(stats.evictions, 0);
  EXPECT_EQ(stats.destroyed_rows, 0);
  EXPECT_EQ(stats.postponed_evictions, 1);
  clock_.Advance(NodePause::kFirst);
  Advance(*cache_, harness, id, 259);
  stats = cache_->Stats(id);
  EXPECT_EQ(stats.evictions, 1);
  const int64_t heads = int64_t{geometry_.num_layers} * geometry_.num_kv_heads;
  EXPECT_EQ(stats.destroyed_rows, heads * (256 - 192));
  EXPECT_EQ(stats.postponed_evictions, 1);
  EXPECT_EQ(stats.skipped_evictions, 0);
  EXPECT_TRUE(cache_->Evictions(id) == DecisionsOfTheFullCache(spec, 256));
  const PageLiveRows youngest = cache_->LiveRows(id).back();
  for (const uint64_t live : youngest.live) {
    EXPECT_EQ(live, 7u);  // positions 256 to 258
  }
  cache_ = nullptr;
}

TEST_F(DestructionOnNodeTest,
       APageWhoseStoreWentUnansweredIsStoredThoughRowsAreDestroyedMeanwhile) {
  Start(InProcessNodeOptions("n0"), Options(ColdMode::kPrefetch));
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(Spec(Fixed("recency", 100))).value();
  ASSERT_TRUE(harness.Step(id, int{kPrompt}).ok());
  lost_stores_ = 1;
  while (cache_->num_tokens(id) < 3 * kPageTokens) {
    ASSERT_TRUE(harness.Step(id, 1).ok());
  }
  ASSERT_GT(cache_->Stats(id).destroyed_rows, 0);

  clock_.Advance(absl::Seconds(1));

  EXPECT_TRUE(cache_->Drain(kLong).ok());
  EXPECT_EQ(cache_->Stats(id).stored_pages, 3);
  EXPECT_EQ(lost_stores_, 0);
  cache_ = nullptr;
}

TEST_F(DestructionOnNodeTest, LayersThatAreDecidedAreNotReadAgain) {
  Start(InProcessNodeOptions("n0"), Options(ColdMode::kPushdown));
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceSpec spec = Spec(Fixed("vase-attn-v", 192));
  const SequenceId id = cache_->Open(spec).value();
  Advance(*cache_, harness, id, 255);

  refused_layers_ = 4;
  Advance(*cache_, harness, id, 256);
  EXPECT_EQ(cache_->Stats(id).evictions, 0);
  refused_layers_ = 3;
  clock_.Advance(NodePause::kFirst);
  Advance(*cache_, harness, id, 257);

  EXPECT_EQ(cache_->Stats(id).evictions, 1);
  EXPECT_TRUE(cache_->Evictions(id) == DecisionsOfTheFullCache(spec, 256));
  cache_ = nullptr;
}

TEST_F(DestructionOnNodeTest, AnEventThatGetsNoFurtherIsGivenUpAndCounted) {
  Start(InProcessNodeOptions("n0"), Options(ColdMode::kPushdown));
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(Spec(Fixed("vase-attn-v", 192))).value();
  Advance(*cache_, harness, id, 255);

  refused_layers_ = kAllLayers;
  for (int i = 1; i <= kMaxEventTries; ++i) {
    EXPECT_EQ(cache_->Stats(id).skipped_evictions, 0);
    clock_.Advance(NodePause::kLongest);
    Advance(*cache_, harness, id, 255 + i);
  }
  refused_layers_ = 0;

  EXPECT_EQ(cache_->Stats(id).skipped_evictions, 1);
  EXPECT_EQ(cache_->Stats(id).evictions, 0);
  // The next one is due by its own rule.
  Advance(*cache_, harness, id, 320);
  const std::vector<EvictionRecord> events = cache_->Evictions(id);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_GT(events[0].num_tokens, 255 + kMaxEventTries);
  EXPECT_EQ(cache_->Stats(id).postponed_evictions, 1);
  cache_ = nullptr;
}

TEST_F(DestructionOnNodeTest,
       TheNodeCountsTheRowsThatLiveAndIsEmptyAfterwards) {
  Start(InProcessNodeOptions("n0"), Options(ColdMode::kPrefetch));
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(Spec(Fixed("vase-attn-v", 128))).value();

  // A node hears once per interval of 16 tokens; events are 64 apart.
  Advance(*cache_, harness, id, 5 * kPageTokens + 40);

  ASSERT_GT(cache_->Stats(id).destroyed_rows, 0);
  const uint64_t live = LiveRowsOfFullPages(*cache_, id);
  EXPECT_GT(live, 0u);
  EXPECT_EQ(node_->directory().stats().live_rows, live);
  cache_->Close(id);
  ASSERT_TRUE(cache_->Drain(kLong).ok());
  EXPECT_EQ(node_->directory().stats().live_rows, 0u);
  EXPECT_EQ(node_->directory().stats().stored_pages, 0u);
  cache_ = nullptr;
}

TEST_F(DestructionOnNodeTest, WhatANodeWasToldWithoutAnAnswerItIsToldAgain) {
  Start(InProcessNodeOptions("n0"), Options(ColdMode::kPrefetch));
  Harness harness(*cache_, *stream_, geometry_);
  const SequenceId id = cache_->Open(Spec(Fixed("vase-attn-v", 128))).value();
  lost_answers_ = 2;

  Advance(*cache_, harness, id, 4 * kPageTokens);
  while (cache_->num_tokens(id) < 5 * kPageTokens + 60) {
    clock_.Advance(absl::Seconds(1));
    Advance(*cache_, harness, id, cache_->num_tokens(id) + 1);
  }

  EXPECT_EQ(lost_answers_, 0);
  ASSERT_GT(cache_->Stats(id).destroyed_rows, 0);
  EXPECT_EQ(node_->directory().stats().live_rows,
            LiveRowsOfFullPages(*cache_, id));
  cache_ = nullptr;
}

TEST_F(DestructionOnNodeTest, MappedRowsAreJudgedLikeThoseInT0) {
  char dir_template[] = "/tmp/farkv-map-XXXXXX";
  const std::string map_dir = mkdtemp(dir_template);
  NodeOptions node = InProcessNodeOptions("n0");
  node.map_dir = map_dir;
  TieringOptions options = Options(ColdMode::kMap);
  options.map_dir = map_dir;
  Start(std::move(node), options);
  auto full = Make({});
  for (const char* policy : {"vase-attn-v", "h2o", "streaming-llm", "rkv-mean",
                             "snap-kv-rkv", "cur-dkv", "random"}) {
    const SequenceSpec spec = Spec(Fixed(policy, 128));
    Harness reference(*full, *stream_, geometry_);
    const SequenceId full_id = full->Open(spec).value();
    Advance(*full, reference, full_id, kTotal);

    Harness harness(*cache_, *stream_, geometry_);
    const SequenceId id = cache_->Open(spec).value();
    Advance(*cache_, harness, id, kTotal);

    EXPECT_GT(cache_->Stats(id).cold_rows_mapped, 500) << policy;
    EXPECT_TRUE(harness.outputs() == reference.outputs()) << policy;
    EXPECT_TRUE(cache_->Evictions(id) == full->Evictions(full_id)) << policy;
    EXPECT_GT(cache_->Stats(id).evictions, 1) << policy;
    full->Close(full_id);
    cache_->Close(id);
  }
  cache_ = nullptr;
  node_ = nullptr;
  EXPECT_EQ(system(("rm -r " + map_dir).c_str()), 0);
}

// T2 pages hold the rows that lived when they were made, and lose more later.
TEST_F(DestructionOnNodeTest,
       RowsOfT2PagesAreDestroyedAlikeHoweverTheyAreRead) {
  const SequenceSpec spec = Spec(Fixed("vase-dkv", 192));
  std::vector<std::vector<std::vector<float>>> outputs;
  std::vector<EvictionRecord> records;
  for (const ColdMode mode : {ColdMode::kPrefetch, ColdMode::kPushdown}) {
    NodeOptions node = InProcessNodeOptions("n0");
    node.t2_bytes = uint64_t{64} << 20;
    TieringOptions options = Options(mode);
    options.t2_ratio = 10000;
    Start(std::move(node), options);
    Harness harness(*cache_, *stream_, geometry_);
    const SequenceId id = cache_->Open(spec).value();
    Advance(*cache_, harness, id, kTotal);
    const SequenceTierStats stats = cache_->Stats(id);
    EXPECT_GT(stats.t2_tokens, 0);
    EXPECT_GT(stats.evictions, 2);
    EXPECT_EQ(stats.postponed_evictions, 0);
    if (mode == ColdMode::kPrefetch) {
      outputs = harness.outputs();
      records = cache_->Evictions(id);
    } else {
      EXPECT_TRUE(harness.outputs() == outputs);
      EXPECT_TRUE(cache_->Evictions(id) == records);
    }
    cache_ = nullptr;
    node_ = nullptr;
  }
}

}  // namespace
}  // namespace farkv
