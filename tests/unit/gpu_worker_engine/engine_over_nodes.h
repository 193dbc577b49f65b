// An engine over nodes of the tiering tests, with little T0, and the same
// requests in an engine without nodes: for what happens to rows on the way.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_ENGINE_ENGINE_OVER_NODES_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_ENGINE_ENGINE_OVER_NODES_H_

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "common/telemetry/metrics.h"
#include "gpu_worker/engine/engine.h"
#include "gpu_worker/tiering/admission.h"
#include "gtest/gtest.h"
#include "tests/unit/gpu_worker_tiering/test_node.h"

namespace farkv {

inline constexpr int kGranularity = 16;
inline constexpr KvGeometry kGeometry = {
    .num_layers = 4, .num_kv_heads = 2, .head_dim = 64, .dtype = DType::kBf16};

struct Output {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> logits;  // CRC32C of each row that chose a token
  GenerationEnd end;
};

class EngineOverNodes : public ::testing::Test {
 protected:
  EngineOverNodes() {
    options_.model =
        std::string(getenv("FARKV_TEST_SOURCE_DIR")) + "/models/reasoner";
    options_.threads = 1;
    options_.placement.granularity = kGranularity;
    options_.placement.interval = 16;
    options_.placement.recent = 32;
    options_.placement.hbm_ratio = 0;
    options_.tiering.granularity = kGranularity;
    options_.tiering.heartbeat = absl::Seconds(5);
    options_.tiering.rpc_timeout = absl::Seconds(60);
  }

  // Before what its sinks refer to.
  ~EngineOverNodes() override { engine_ = nullptr; }

  static GenerationRequest Request(const std::string& id, int64_t prompt,
                                   int64_t new_tokens) {
    GenerationRequest request;
    request.request_id = id;
    const uint64_t seed = id.size();
    for (int64_t i = 0; i < prompt; ++i) {
      const auto draw = CounterDraw(seed, {static_cast<uint64_t>(i)});
      request.prompt.push_back(static_cast<int32_t>(draw % 60));
    }
    request.max_new_tokens = new_tokens;
    request.ignore_eos = true;
    return request;
  }

  int64_t ShareInSets(const GenerationRequest& request) const {
    SequenceSpec spec;
    spec.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    spec.max_tokens = spec.prompt_tokens + request.max_new_tokens;
    spec.placement = options_.placement;
    if (request.hbm_ratio) spec.placement.hbm_ratio = *request.hbm_ratio;
    return farkv::ShareInSets(spec, /*has_nodes=*/true);
  }

  // T0 of so many sets of lines over the first `num_nodes` nodes.
  void Start(int64_t sets, int num_nodes) {
    std::vector<TestNode*> nodes = {&a_, &b_};
    nodes.resize(static_cast<size_t>(num_nodes));
    StartOver(sets, nodes);
  }

  void StartOver(int64_t sets, const std::vector<TestNode*>& nodes) {
    EngineOptions options = WithLogits();
    options.cache_sink = [this](const EngineView& engine, const std::string& id,
                                int64_t) {
      if (on_token_) on_token_(engine, id);
    };
    options.metrics = &metrics_;
    options.tiering.t0_bytes =
        static_cast<uint64_t>(sets) *
        static_cast<uint64_t>(kGeometry.num_layers) *
        kGeometry.BlockBytes(static_cast<size_t>(options_.tiering.granularity));
    for (size_t i = 0; i < nodes.size(); ++i) {
      options.tiering.memory_nodes.push_back(std::to_string(i));
    }
    auto engine = Engine::CreateWith(options, AccessTo(network_, nodes));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  EngineOptions WithLogits() {
    EngineOptions options = options_;
    options.logit_sink = [this](const std::string& id, int64_t,
                                std::span<const float> logits) {
      absl::MutexLock lock(&mutex_);
      logits_[id].push_back(Crc32c(std::as_bytes(logits)));
    };
    return options;
  }

  std::shared_ptr<GenerationStream> Submit(GenerationRequest request) {
    return engine_->Submit(std::move(request)).value();
  }

  Output Collect(GenerationStream& stream) {
    Output run;
    for (;;) {
      GenerationEvent event = stream.WaitAndTake();
      run.tokens.insert(run.tokens.end(), event.tokens.begin(),
                        event.tokens.end());
      if (!event.end.has_value()) continue;
      run.end = *std::move(event.end);
      absl::MutexLock lock(&mutex_);
      run.logits = std::exchange(logits_[stream.request_id()], {});
      return run;
    }
  }

  // The request in an engine of its own, without nodes.
  Output Alone(GenerationRequest request) {
    EngineOptions options = WithLogits();
    options.tiering.t0_bytes = uint64_t{256} << 20;
    const auto engine = Engine::Create(std::move(options)).value();
    return Collect(*engine->Submit(std::move(request)).value());
  }

  // As Alone. Tests of one program often ask for the same greedy request, which
  // takes half of their time and depends on no option that they set.
  const Output& AloneOnce(const GenerationRequest& request) {
    static auto& kept =
        *new std::map<std::pair<std::vector<int32_t>, int64_t>, Output>;
    static auto& last = *new Output;
    if (request.sampling.temperature != 0 || !request.forced.empty() ||
        request.destruction || request.selection) {
      return last = Alone(request);
    }
    const auto [at, is_new] =
        kept.try_emplace({request.prompt, request.max_new_tokens});
    if (is_new) at->second = Alone(request);
    return at->second;
  }

  // It has ended as if no row had ever been lost.
  void ExpectAsAlone(const Output& run, const GenerationRequest& request) {
    EXPECT_EQ(run.end.reason, FinishReason::kLength) << run.end.error;
    const Output& alone = AloneOnce(request);
    EXPECT_EQ(run.tokens, alone.tokens);
    EXPECT_EQ(run.logits, alone.logits);
  }

  static SequenceInfo InfoOf(const EngineView& engine, const std::string& id) {
    for (SequenceInfo& info : engine.Sequences()) {
      if (info.request_id == id) return std::move(info);
    }
    return {};
  }

  // Calls `strike` once, on the engine's thread between two steps, when rows
  // of all `ids` are cold. Until then tokens are so slow that stores keep up.
  void StrikeWhenCold(std::vector<std::string> ids,
                      std::function<void()> strike) {
    on_token_ = [=, this, struck = false](const EngineView& engine,
                                          const std::string&) mutable {
      if (struck) return;
      for (const std::string& id : ids) {
        const SequenceTierStats tiers = InfoOf(engine, id).tiers;
        if (tiers.t1_tokens > 0) continue;
        if (tiers.t0_tokens > 96) {  // a page may leave
          never_.WaitForNotificationWithTimeout(absl::Milliseconds(5));
        }
        return;
      }
      struck = true;
      strike();
    };
  }

  // Calls `act` once, on the engine's thread, while `id` is recomputed.
  void WhileRecomputed(const std::string& id, std::function<void()> act) {
    on_token_ = [=, strike = std::move(on_token_), acted = false](
                    const EngineView& engine, const std::string& of) mutable {
      strike(engine, of);
      if (acted || InfoOf(engine, id).state != "recompute") return;
      acted = true;
      act();
    };
  }

  TestNode& Holder() { return a_.stored_pages() > 0 ? a_ : b_; }

  // Of the worker; -1: there is no such counter.
  int Count(const std::string& counter) const {
    const std::string text = metrics_.Render();
    const std::string name = "\nfarkv_worker_" + counter + " ";
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : atoi(&text[at + name.size()]);
  }
  int Recoveries() const { return Count("recoveries_total"); }

  // Ends the engine; what it had on nodes that are up must be free.
  void ExpectNothingLeft(std::vector<const TestNode*> nodes) {
    engine_ = nullptr;
    for (const TestNode* node : nodes) EXPECT_EQ(node->used_pages(), 0);
  }

  Metrics metrics_;
  LoopbackNetwork network_{LoopbackNetwork::Drive::kThread};
  TestNode a_{network_, kGeometry, "a"}, b_{network_, kGeometry, "b"};
  EngineOptions options_;
  absl::Notification never_;
  std::function<void(const EngineView&, const std::string&)> on_token_;
  absl::Mutex mutex_;
  std::map<std::string, std::vector<uint32_t>> logits_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Engine> engine_;
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_ENGINE_ENGINE_OVER_NODES_H_
