// Nodes that rank the rows of an event where they lie: real nodes, real calls;
// the decision is the one of the cache without nodes.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/policy/eviction_call.h"
#include "gpu_worker/tiering/node_access.h"
#include "gpu_worker/tiering/node_pause.h"
#include "gtest/gtest.h"
#include "harness.h"
#include "kernels/stream.h"
#include "tests/testing/in_process_node.h"
#include "tests/testing/manual_clock.h"

namespace farkv {
namespace {

constexpr int64_t kPrompt = 20;

// What a call to a node becomes: `call` does it.
using Answer = absl::StatusOr<EvictionReply>;
using Edit = std::function<Answer(const std::function<Answer()>& call)>;

SequenceSpec Spec(const char* policy) {
  SequenceSpec spec = TestSpec(16, kPrompt, 600);
  spec.placement.prompt_in_t0 = false;
  DestructionSettings settings;
  settings.policy = **ParseDestructionPolicy(policy);
  settings.budget.kind = BudgetKind::kFixed;
  settings.budget.tokens = 192;
  spec.destruction = settings;
  return spec;
}

// The youngest 128 tokens stay, so every candidate is in a page that is stored.
SequenceSpec BoundedSpec(const char* policy) {
  SequenceSpec spec = Spec(policy);
  spec.destruction->budget.kind = BudgetKind::kBounds;
  spec.destruction->budget.bounds = {.per_event_ratio = 1000,
                                     .cumulative_cap = 6000};
  return spec;
}

class NodeDecisionsTest : public ::testing::Test {
 protected:
  void StartNodes(int count) {
    for (int i = 0; i < count; ++i) {
      nodes_.push_back(
          StartInProcessNode(InProcessNodeOptions("n" + std::to_string(i)),
                             nullptr)
              .value());
    }
  }

  TieringOptions Options(ColdMode cold) const {
    TieringOptions options;
    options.granularity = 16;
    options.t0_bytes = uint64_t{1} << 20;
    // Nothing is late here but what is said to be.
    options.heartbeat = absl::Seconds(5);
    options.fetch_timeout = absl::Seconds(60);
    options.cold = cold;
    options.stripe_tokens = 64;
    options.spread = true;
    for (const auto& node : nodes_) {
      options.memory_nodes.push_back("127.0.0.1:" +
                                     std::to_string(node->ports().listen));
    }
    return options;
  }

  // Over the nodes; calls to decide go through edit_.
  std::unique_ptr<KvCache> Make(ColdMode cold = ColdMode::kPushdown) {
    const TieringOptions options = Options(cold);
    NodeAccess access = MakeNodeAccess(options);
    access.clock = &clock_;
    access.control =
        [this, make = access.control](
            const std::string& address) -> absl::StatusOr<ControlCalls> {
      auto calls = make(address);
      if (!calls.ok()) return calls.status();
      calls->decide_evictions = [this, decide = calls->decide_evictions](
                                    const EvictionCall& call,
                                    absl::Duration timeout) -> Answer {
        ++asked_;
        if (call.final_list) ++asked_to_decide_;
        const auto ask = [&] { return decide(call, timeout); };
        return edit_ ? edit_(ask) : ask();
      };
      return calls;
    };
    return KvCache::CreateWith(options, TestGeometry(), kQueryHeads, *device_,
                               access)
        .value();
  }

  // One sequence of `tokens`, all stores and calls awaited; its events.
  struct Outcome {
    std::vector<EvictionRecord> records;
    std::vector<LoggedEviction> log;
    SequenceTierStats stats;
  };
  Outcome Run(KvCache& cache, const SequenceSpec& spec, int64_t tokens) {
    Harness harness(cache, *stream_, TestGeometry());
    const SequenceId id = cache.Open(spec).value();
    Continue(cache, harness, id, tokens);
    Outcome run{cache.Evictions(id),
                cache.Decisions({.count = 1000, .sessions = {}}),
                cache.Stats(id)};
    cache.Close(id);
    return run;
  }
  static void Continue(KvCache& cache, Harness& harness, SequenceId id,
                       int64_t tokens) {
    while (cache.num_tokens(id) < tokens) {
      const int rows = cache.num_tokens(id) == 0 ? int{kPrompt} : 1;
      const absl::Status status = harness.Step(id, rows);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(cache.Drain(absl::Seconds(60)).ok());
    }
  }
  std::vector<EvictionRecord> WithoutNodes(const SequenceSpec& spec,
                                           int64_t tokens) {
    TieringOptions options = Options(ColdMode::kPrefetch);
    options.memory_nodes.clear();
    const auto cache =
        KvCache::Create(options, TestGeometry(), kQueryHeads, *device_).value();
    return Run(*cache, spec, tokens).records;
  }

  // What the nodes have decided, as their /metrics show it.
  int DecidedOnNodes() const {
    const std::string name = "\nfarkv_node_decide_requests_total ";
    int decided = 0;
    for (const auto& node : nodes_) {
      const std::string text = node->metrics().Render();
      const size_t at = text.find(name);
      EXPECT_NE(at, std::string::npos);
      decided += std::atoi(text.c_str() + at + name.size());
    }
    return decided;
  }

  ThreadPool pool_{1};
  std::unique_ptr<Device> device_ = OpenDevice("cpu", pool_).value();
  std::unique_ptr<Stream> stream_ = device_->NewStream();
  ManualClock clock_;
  Edit edit_;  // set between steps only
  std::atomic<int> asked_{0}, asked_to_decide_{0};
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(NodeDecisionsTest, OneNodeOrTwoDecideAsTheWorkerDoes) {
  for (const char* policy : {"vase-dkv", "cur-dkv"}) {
    const SequenceSpec spec = Spec(policy);
    const auto expected = WithoutNodes(spec, 420);
    ASSERT_GE(expected.size(), 2u);
    for (const int count : {1, 2}) {
      nodes_.clear();
      asked_ = 0;
      StartNodes(count);
      const auto cache = Make();

      const Outcome run = Run(*cache, spec, 420);

      EXPECT_TRUE(run.records == expected) << policy << ", " << count;
      EXPECT_EQ(run.stats.node_evictions, run.stats.evictions);
      EXPECT_EQ(run.log.front().layers_by_nodes, TestGeometry().num_layers);
      EXPECT_EQ(run.stats.postponed_evictions, 0);
      EXPECT_GT(asked_, 0);
      EXPECT_EQ(DecidedOnNodes(), asked_);
    }
  }
}

TEST_F(NodeDecisionsTest, ANodeThatHoldsEveryCandidateDecidesAlone) {
  StartNodes(1);
  const SequenceSpec spec = BoundedSpec("vase-dkv");
  const auto cache = Make();

  const Outcome run = Run(*cache, spec, 420);

  EXPECT_TRUE(run.records == WithoutNodes(spec, 420));
  EXPECT_GT(asked_, 0);
  EXPECT_EQ(asked_to_decide_, asked_);
  EXPECT_EQ(DecidedOnNodes(), asked_);
}

TEST_F(NodeDecisionsTest, OnlyPushdownAsksAndOnlyForRowsThatNodesCanRankAlone) {
  StartNodes(1);
  const auto pushing = Make();
  for (const char* policy : {"vase-attn-v", "random", "tiers"}) {
    const Outcome run = Run(*pushing, Spec(policy), 330);
    EXPECT_GT(run.stats.evictions, 0) << policy;
    EXPECT_EQ(run.stats.node_evictions, 0) << policy;
  }
  const auto fetching = Make(ColdMode::kPrefetch);

  const Outcome run = Run(*fetching, Spec("vase-dkv"), 420);

  EXPECT_GT(run.stats.evictions, 0);
  EXPECT_EQ(run.stats.node_evictions, 0);
  EXPECT_EQ(asked_, 0);
}

// Every way in which an answer can fail: the rows are read, the decision is the
// same, and the node is left alone until its pause is over.
TEST_F(NodeDecisionsTest,
       ANodeThatRefusesOrIsLateOrAnswersNonsenseIsNotNeeded) {
  StartNodes(1);
  const std::vector<Edit> edits = {
      [](const auto&) -> Answer {
        return absl::ResourceExhaustedError("too many decisions");
      },
      [](const auto&) -> Answer { return absl::DeadlineExceededError("late"); },
      [](const std::function<Answer()>& call) -> Answer {
        Answer answer = call();
        if (!answer.ok()) return answer;
        for (RankedHead& head : answer->heads) {
          if (!head.rows.empty()) head.rows.pop_back();
          if (!head.decision.kept.empty()) head.decision.kept.pop_back();
        }
        return answer;
      },
      [](const std::function<Answer()>& call) -> Answer {
        Answer answer = call();
        if (answer.ok()) answer->heads.clear();
        return answer;
      }};
  for (const SequenceSpec& spec : {Spec("vase-dkv"), BoundedSpec("vase-dkv")}) {
    const auto expected = WithoutNodes(spec, 330);
    ASSERT_GT(expected.size(), 0u);
    for (const Edit& edit : edits) {
      const auto cache = Make();
      edit_ = edit;
      asked_ = 0;

      const Outcome run = Run(*cache, spec, 330);

      EXPECT_TRUE(run.records == expected);
      EXPECT_EQ(run.stats.node_evictions, 0);
      EXPECT_EQ(run.stats.postponed_evictions, 0);
      EXPECT_EQ(asked_, 1);
    }
  }
}

TEST_F(NodeDecisionsTest, APageThatMovedIsAskedAboutOnceMore) {
  StartNodes(1);
  const SequenceSpec spec = Spec("vase-dkv");
  const auto cache = Make();
  int calls = 0;
  edit_ = [&calls](const std::function<Answer()>& call) -> Answer {
    if (++calls == 1) return absl::AbortedError("a page moved");
    return call();
  };

  const Outcome run = Run(*cache, spec, 420);

  EXPECT_TRUE(run.records == WithoutNodes(spec, 420));
  EXPECT_EQ(run.stats.node_evictions, run.stats.evictions);
}

TEST_F(NodeDecisionsTest, ANodeThatFailedIsAskedAgainAfterAPause) {
  StartNodes(1);
  const SequenceSpec spec = Spec("vase-dkv");
  const auto cache = Make();
  Harness harness(*cache, *stream_, TestGeometry());
  const SequenceId id = cache->Open(spec).value();
  edit_ = [](const auto&) -> Answer { return absl::InternalError("broken"); };
  Continue(*cache, harness, id, 300);
  ASSERT_GT(cache->Stats(id).evictions, 0);
  ASSERT_EQ(cache->Stats(id).node_evictions, 0);

  edit_ = nullptr;
  clock_.Advance(NodePause::kFirst);
  Continue(*cache, harness, id, 420);

  const SequenceTierStats stats = cache->Stats(id);
  EXPECT_GT(stats.node_evictions, 0);
  EXPECT_LT(stats.node_evictions, stats.evictions);
  EXPECT_TRUE(cache->Evictions(id) == WithoutNodes(spec, 420));
  cache->Close(id);
}

}  // namespace
}  // namespace farkv
