// A memory node that is killed, frozen, restarted without its pages or that
// sends damaged rows in the middle of a generation: the request goes on, with
// the tokens of a run without nodes (DESIGN P5). Real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/engine_run.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using worker::v1::GenerateRequest;

constexpr int32_t kTokens = 2000;
// Half of the rows are cold by then.
constexpr size_t kTokensBeforeStrike = 1400;

GenerateRequest LongRequest(int32_t tokens = kTokens) {
  GenerateRequest request = TextRequest("a3;b4;c1;d2;|", tokens);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

// Of this process alone, so that a port is still free when its node starts
// again.
std::string OwnHost() {
  const auto pid = static_cast<uint32_t>(getpid());
  return absl::StrCat("127.", 1 + (pid >> 16 & 63), ".", pid >> 8 & 255, ".",
                      1 + pid % 254);
}

class RecoveryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto full = WorkerProcess::Start({});
    ASSERT_TRUE(full.ok()) << full.status();
    reference_ = (*full)->Generate(LongRequest()).tokens;
    ASSERT_EQ(reference_.size(), static_cast<size_t>(kTokens));
    ExpectCleanEnd(**full, 0);
  }

  // Pages take turns over the nodes, whose answers are so late that a request
  // that needs them is at work for many seconds after the strike.
  void Start(int num_nodes, const std::string& t0_bytes) {
    bench::NodeClusterOptions options;
    options.bin_dir = BinDir();
    options.t1_bytes = "64MiB";
    options.num_nodes = num_nodes;
    options.host = OwnHost();
    auto cluster = bench::NodeCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_.emplace(*std::move(cluster));
    auto worker = WorkerProcess::Start(
        {"--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ","),
         "--spread", "--stripe=64", "--hbm-ratio=0.1", "--t0-bytes=" + t0_bytes,
         "--cold=prefetch", "--heartbeat=1s", "--lease=6s",
         "--faults=seed=1,delay=1:5ms", "--fetch-timeout=2s"},
        /*faults=*/true);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }

  Generated StrikeInMidGeneration(const std::function<void()>& strike) {
    grpc::ClientContext context;
    SetDeadline(context, absl::Seconds(200));
    const auto reader = worker_->generation().Generate(&context, LongRequest());
    Generated generated;
    bool struck = false;
    for (worker::v1::GenerateResponse response; reader->Read(&response);) {
      for (int32_t id : response.delta().token_ids()) {
        generated.tokens.push_back(id);
      }
      if (response.has_error()) generated.error = response.error();
      if (response.has_finished()) generated.finished = response.finished();
      if (!struck && generated.tokens.size() > kTokensBeforeStrike) {
        strike();
        struck = true;
      }
    }
    generated.status = reader->Finish();
    return generated;
  }

  static void ExpectRecovered(const Generated& generated) {
    EXPECT_FALSE(generated.error.has_value()) << generated.error->message();
    ASSERT_TRUE(generated.finished.has_value())
        << generated.status.error_message();
    EXPECT_EQ(generated.tokens, reference_);
    EXPECT_GT(generated.finished->tiers().recomputed_tokens(), 0);
    EXPECT_EQ(generated.finished->tiers().exactness(),
              worker::v1::OUTPUT_EXACTNESS_BITWISE);
    EXPECT_EQ(generated.finished->usage().completion_tokens(), kTokens);
  }

  // The other node's rows, and those in T0, are no reason to begin anew.
  static void ExpectPartOfThemRecomputed(const Generated& generated) {
    EXPECT_LT(generated.finished->tiers().recomputed_tokens(),
              static_cast<int64_t>(kTokensBeforeStrike));
  }

  bench::NodeCluster::Node& node(size_t index) {
    return cluster_->nodes()[index];
  }

  void ExpectNothingLeft() {
    ExpectSurvivorsEndClean(worker_.get(), *cluster_, Recoveries::kAllowed);
  }

  inline static std::vector<int32_t> reference_;
  std::optional<bench::NodeCluster> cluster_;
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(RecoveryTest, ARequestOutlivesOneOfTwoNodesThatIsKilled) {
  Start(2, "2560KiB");

  const Generated generated =
      StrikeInMidGeneration([this] { node(0).process.Signal(SIGKILL); });

  ExpectRecovered(generated);
  ExpectPartOfThemRecomputed(generated);
  ExpectNothingLeft();
}

TEST_F(RecoveryTest, ARequestOutlivesOneOfTwoNodesThatIsFrozen) {
  Start(2, "2560KiB");

  const Generated generated =
      StrikeInMidGeneration([this] { node(0).process.Signal(SIGSTOP); });
  node(0).process.Signal(SIGCONT);

  ExpectRecovered(generated);
  ExpectPartOfThemRecomputed(generated);
  ExpectNothingLeft();
}

// T0 would hold the whole sequence: how fast the node starts again does not
// matter.
TEST_F(RecoveryTest, ANodeThatWasKilledIsUsedAgainWhenItIsBack) {
  Start(1, "16MiB");

  const Generated generated = StrikeInMidGeneration([this] {
    node(0).process.Signal(SIGKILL);
    ASSERT_TRUE(node(0).process.Wait(absl::Seconds(30)).ok());
    const absl::Status restarted = cluster_->Restart(0);
    ASSERT_TRUE(restarted.ok()) << restarted;
  });

  ExpectRecovered(generated);
  const absl::Time end = absl::Now() + absl::Seconds(60);
  Generated next;
  do {
    next = worker_->Generate(LongRequest(600));
    ASSERT_TRUE(next.finished.has_value()) << next.status.error_message();
  } while (next.finished->tiers().cold_rows_fetched() == 0 &&
           absl::Now() < end);
  EXPECT_GT(next.finished->tiers().cold_rows_fetched(), 0);
  ExpectNothingLeft();
}

// What a bench measures or compares would be the recovery's doing.
TEST(BenchRunTest, ARunThatLosesRowsWithoutBeingMeantToIsAnError) {
  bench::NodeClusterOptions nodes;
  nodes.bin_dir = BinDir();
  nodes.t1_bytes = "64MiB";
  nodes.num_nodes = 2;
  auto cluster = bench::NodeCluster::Start(nodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EngineOptions options;
  options.model = ReasonerDir();
  options.placement.hbm_ratio = 0;
  options.placement.recent = 32;
  options.placement.interval = 16;
  options.tiering.t0_bytes = uint64_t{16} << 20;
  options.tiering.spread = true;
  options.tiering.stripe_tokens = 64;
  options.await_stores_every = 16;
  bench::UseCluster(*cluster, ColdMode::kPrefetch, options);
  ChildProcess& first = cluster->nodes().front().process;
  int64_t tokens = 0;  // on the engine's thread
  options.cache_sink = [&](const EngineView&, const std::string&, int64_t) {
    if (++tokens != 400) return;
    first.Signal(SIGKILL);
    first.Wait(absl::Seconds(30)).IgnoreError();
  };
  GenerationRequest request;
  request.prompt = bench::RandomTokens(1, 1, 20, 60);
  request.max_new_tokens = 500;
  request.ignore_eos = true;

  const absl::Status refused = bench::RunRequests(options, {request}).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kInternal) << refused;
  EXPECT_THAT(refused.ToString(), ::testing::HasSubstr("tokens recomputed"));
  ExpectSurvivorsEndClean(nullptr, *cluster, Recoveries::kAllowed);
}

}  // namespace
}  // namespace farkv::testing
