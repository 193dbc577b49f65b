// A sequence with more cold rows than a step may fetch, which memory nodes
// attend to: what becomes of it when one of them is lost.
#include <memory>
#include <string>
#include <vector>

#include "gpu_worker/engine/engine.h"
#include "gtest/gtest.h"
#include "tests/testing/in_process_node.h"
#include "tests/unit/gpu_worker_engine/engine_over_nodes.h"

namespace farkv {
namespace {

class LargePushdownTest : public EngineOverNodes {
 protected:
  LargePushdownTest() {
    options_.await_stores_every = 8;  // so that rows are cold soon
    options_.tiering.cold = ColdMode::kPushdown;
    options_.tiering.stripe_tokens = 64;
    options_.tiering.spread = true;
    for (int i = 0; i < 2; ++i) {
      nodes_.push_back(
          StartInProcessNode(InProcessNodeOptions("n" + std::to_string(i)),
                             nullptr)
              .value());
      options_.tiering.memory_nodes.push_back(
          "127.0.0.1:" + std::to_string(nodes_.back()->ports().listen));
    }
  }
  ~LargePushdownTest() override { engine_ = nullptr; }

  void StartOverThem(int64_t sets) {
    EngineOptions options = WithLogits();
    options.cache_sink = [this](const EngineView& engine, const std::string& id,
                                int64_t) {
      if (on_token_) on_token_(engine, id);
    };
    options.metrics = &metrics_;
    options.tiering.t0_bytes = static_cast<uint64_t>(sets) *
                               static_cast<uint64_t>(kGeometry.num_layers) *
                               kGeometry.BlockBytes(kGranularity);
    engine_ = Engine::Create(options).value();
  }

  // Without nodes: their rows are nobody's business there.
  Output AloneWithoutNodes(const GenerationRequest& request) {
    options_.tiering.memory_nodes.clear();
    return Alone(request);
  }

  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(LargePushdownTest, RowsOfALostNodeAreRecomputedRowByRow) {
  const GenerationRequest request = Request("main", 32, 500);
  // Of one node; the chunks of a replay would have to fetch more.
  options_.tiering.max_layer_fetch_bytes = kGeometry.BlockBytes(40);
  StartOverThem(ShareInSets(request) + 2);
  bool struck = false;
  on_token_ = [&, this](const EngineView& engine, const std::string& id) {
    if (struck || InfoOf(engine, id).tiers.t1_tokens < 300) return;
    struck = true;
    nodes_[0] = nullptr;
  };

  const Output run = Collect(*Submit(request));

  EXPECT_TRUE(struck);
  EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
  EXPECT_GE(Recoveries(), 1);
  EXPECT_GT(run.end.tiers.recomputed_tokens, 300);
  EXPECT_GT(run.end.tiers.cold_rows_pushed_down, 0);
  const Output alone = AloneWithoutNodes(request);
  EXPECT_EQ(run.tokens, alone.tokens);
  EXPECT_EQ(run.logits, alone.logits);
}

}  // namespace
}  // namespace farkv
