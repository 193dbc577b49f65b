// How the programs end while they have work, and that they are quiet when they
// have none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::HasSubstr;
using worker::v1::GenerateRequest;
using worker::v1::GenerateResponse;

constexpr int kBySignal = 128 + SIGTERM;

class ShutdownTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (!cluster_.has_value()) return;
    ExpectSurvivorsEndClean(worker_.get(), *cluster_, recoveries_);
  }

  void StartNode() { StartNodes(1); }
  void StartNodes(int count) {
    bench::NodeClusterOptions options;
    options.num_nodes = count;
    options.bin_dir = BinDir();
    options.t1_bytes = "64MiB";
    options.extra_flags = {"--drain-grace=" + drain_grace_};
    auto cluster = bench::NodeCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_.emplace(*std::move(cluster));
  }
  void Start() {
    StartNode();
    StartWorker({"--hbm-ratio=0.1"});
  }
  // See SlowWorkerFlags.
  void StartSlow(const std::vector<std::string>& more_flags = {}) {
    StartNode();
    std::vector<std::string> flags = SlowWorkerFlags();
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    StartWorker(std::move(flags), /*faults=*/true);
  }
  void StartWorker(std::vector<std::string> flags, bool faults = false) {
    flags.push_back("--memory-nodes=" +
                    absl::StrJoin(cluster_->Addresses(), ","));
    auto worker = WorkerProcess::Start(flags, faults);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  bench::NodeCluster::Node& node() { return cluster_->nodes().front(); }

  // A request for so many tokens; returns once its first ones have come.
  void Begin(int32_t tokens) {
    SetDeadline(context_, absl::Seconds(60));
    GenerateRequest request = TextRequest("a1;b2;", tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    reader_ = worker_->generation().Generate(&context_, request);
    ASSERT_TRUE(reader_->Read(&response_));
  }
  // Reads on until the stream ends.
  grpc::Status ReadToEnd() {
    while (reader_->Read(&response_)) {
    }
    return reader_->Finish();
  }

  // Until the program has taken note of its first signal, or has ended.
  static void AwaitDrain(ChildProcess& process, uint16_t metrics_port) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (HttpGet(metrics_port, "/readyz").find("200 OK") !=
           std::string::npos) {
      if (process.Wait(absl::Milliseconds(5)).ok()) return;
      ASSERT_LT(absl::Now(), end);
    }
  }

  // How long a worker that was killed keeps its node waiting.
  std::string drain_grace_ = "2s";
  Recoveries recoveries_ = Recoveries::kNone;
  std::optional<bench::NodeCluster> cluster_;
  std::unique_ptr<WorkerProcess> worker_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<GenerateResponse>> reader_;
  GenerateResponse response_;
};

TEST_F(ShutdownTest, SigtermLetsAWorkersRequestsEndAndTakesNoMore) {
  Start();
  Begin(1500);

  worker_->process().Signal(SIGTERM);
  AwaitDrain(worker_->process(), worker_->metrics_port());

  EXPECT_EQ(worker_->Generate(TextRequest("a1;", 5)).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(ReadToEnd().ok());
  ASSERT_TRUE(response_.has_finished());
  EXPECT_EQ(response_.finished().usage().completion_tokens(), 1500);
  EXPECT_EQ(worker_->process().Wait(absl::Seconds(30)).value_or(-1), 0);
}

TEST_F(ShutdownTest, ADrainIsToldUntilTheLastRequestHasEnded) {
  StartSlow();
  Begin(7000);
  grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(60));
  admin::v1::DrainRequest request;
  request.set_drain(true);
  const auto drain = worker_->admin().Drain(&context, request);

  admin::v1::DrainResponse told;
  ASSERT_TRUE(drain->Read(&told));
  EXPECT_EQ(told.sessions_left(), 1);
  EXPECT_FALSE(told.done());
  context_.TryCancel();
  EXPECT_EQ(ReadToEnd().error_code(), grpc::StatusCode::CANCELLED);
  while (drain->Read(&told)) {
  }

  EXPECT_TRUE(drain->Finish().ok());
  EXPECT_EQ(told.sessions_left(), 0);
  EXPECT_TRUE(told.done());
}

TEST_F(ShutdownTest, ASecondSigtermEndsAWorkerAtOnce) {
  // Its node waits for the lease, and once more as long.
  StartSlow({"--lease=5s"});
  Begin(7000);
  worker_->process().Signal(SIGTERM);
  AwaitDrain(worker_->process(), worker_->metrics_port());

  worker_->process().Signal(SIGTERM);

  EXPECT_EQ(worker_->process().Wait(absl::Seconds(30)).value_or(-1), kBySignal);
  EXPECT_FALSE(ReadToEnd().ok());
}

// Its lease is much longer than the test waits.
TEST_F(ShutdownTest, ASigtermBetweenTwoNodesClosesWhatTheFirstHasOpened) {
  StartNodes(2);
  const TemporaryFolder folder;
  ChildProcess& slow = cluster_->nodes().back().process;
  slow.Signal(SIGSTOP);
  auto worker = ChildProcess::Start(
      {BinDir() + "/farkv-worker", "--listen=127.0.0.1:0",
       "--admin-listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
       "--model=" + ReasonerDir(), "--lease=10m",
       "--port-file=" + folder.path() + "/worker.json",
       "--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ",")},
      folder.path() + "/worker.log");
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (ReadMetrics(node().metrics_port)["farkv_node_sessions"] < 1) {
    ASSERT_LT(absl::Now(), end);
  }

  worker->Signal(SIGTERM);
  slow.Signal(SIGCONT);

  EXPECT_EQ(worker->Wait(absl::Seconds(30)).value_or(-1), 0);
  EXPECT_TRUE(cluster_->AwaitSettled().ok());
}

TEST_F(ShutdownTest, ANodeWaitsForItsSessionsUntilASecondSigterm) {
  drain_grace_ = "10m";  // nothing but the signal ends it
  recoveries_ = Recoveries::kAllowed;
  StartSlow();
  Begin(7000);
  node().process.Signal(SIGTERM);
  AwaitDrain(node().process, node().metrics_port);
  EXPECT_EQ(node().process.Wait(absl::Milliseconds(300)).status().code(),
            absl::StatusCode::kDeadlineExceeded);

  node().process.Signal(SIGTERM);

  EXPECT_EQ(node().process.Wait(absl::Seconds(30)).value_or(-1), kBySignal);
  context_.TryCancel();
  ReadToEnd();
}

// T0 has no room for the whole request: its rows must go on leaving for the
// node, which drains and has just one client. The session is open by then: a
// first token may come before it is.
TEST_F(ShutdownTest, ANodeThatDrainsServesARunningRequestToItsEnd) {
  drain_grace_ = "10m";
  StartNode();
  StartWorker({"--hbm-ratio=0", "--granularity=16", "--recent=16",
               "--interval=16", "--t0-bytes=1MiB"});
  Begin(1000);
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (ReadMetrics(node().metrics_port)["farkv_node_store_requests_total"] <
         1) {
    ASSERT_LT(absl::Now(), end);
  }

  node().process.Signal(SIGTERM);
  AwaitDrain(node().process, node().metrics_port);
  EXPECT_TRUE(ReadToEnd().ok());

  ASSERT_TRUE(response_.has_finished()) << response_.ShortDebugString();
  EXPECT_EQ(response_.finished().usage().completion_tokens(), 1000);
  EXPECT_EQ(response_.finished().tiers().recomputed_tokens(), 0);
  ExpectCleanEnd(*worker_, 1);
  EXPECT_EQ(node().process.Wait(absl::Seconds(60)).value_or(-1), 0);
}

// Of all threads of a process so far: what one that spins uses, and how often
// one that polls has gone to sleep.
struct Use {
  absl::Duration cpu;
  int64_t sleeps = 0;
};

Use UseOf(pid_t pid) {
  Use use;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    int64_t nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    use.cpu += absl::Nanoseconds(nanoseconds);
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      int64_t sleeps = 0;
      if (word == "voluntary_ctxt_switches:" && status >> sleeps) {
        use.sleeps += sleeps;
      }
    }
  }
  return use;
}

TEST_F(ShutdownTest, ANodeWithNothingToDoUsesNoProcessor) {
  Start();
  ASSERT_TRUE(worker_->Generate(TextRequest("a1;", 200)).status.ok());
  worker_->process().Signal(SIGTERM);
  ASSERT_EQ(worker_->process().Wait(absl::Seconds(30)).value_or(-1), 0);
  ChildProcess& process = node().process;
  ASSERT_GT(UseOf(process.pid()).cpu, absl::ZeroDuration());
  ASSERT_GT(UseOf(process.pid()).sleeps, 0);
  // A poll each millisecond would sleep 2,000 times in a window.
  constexpr int64_t kFewSleeps = 100;
  absl::Duration least_cpu = absl::InfiniteDuration();
  int64_t fewest_sleeps = 2000;

  // The end of the worker's session may fall into the first ones.
  for (int i = 0; i < 5; ++i) {
    const Use before = UseOf(process.pid());
    ASSERT_FALSE(process.Wait(absl::Seconds(2)).ok());
    const Use after = UseOf(process.pid());
    least_cpu = std::min(least_cpu, after.cpu - before.cpu);
    fewest_sleeps = std::min(fewest_sleeps, after.sleeps - before.sleeps);
    if (least_cpu <= absl::Milliseconds(30) && fewest_sleeps < kFewSleeps) {
      break;
    }
  }

  EXPECT_LE(least_cpu, absl::Milliseconds(30));
  EXPECT_LT(fewest_sleeps, kFewSleeps);
}

// The port of /metrics of the first node that a bench has started, once pages
// are stored there; its folders lie in `folder`.
uint16_t AwaitBenchAtWork(ChildProcess& bench, const std::string& folder) {
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (absl::Now() < end && !bench.Wait(absl::Milliseconds(5)).ok()) {
    for (const auto& cluster : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(cluster.path() / "node-0.json");
      const auto ports = nlohmann::json::parse(file, nullptr, false);
      if (!ports.is_object()) continue;
      const uint16_t port = ports.value("metrics", uint16_t{0});
      if (ReadMetrics(port)["farkv_node_pages{state=\"stored\"}"] > 0)
        return port;
    }
  }
  return 0;
}

TEST(BenchSignalTest, ABenchThatIsEndedLeavesNoNodeAndNoFolder) {
  for (const int signal : {SIGTERM, SIGINT}) {
    TemporaryFolder folder, logs;
    const std::string log = logs.path() + "/log";
    auto bench = ChildProcess::Start(
        {"/usr/bin/env", "TMPDIR=" + folder.path(), BinDir() + "/farkv-bench",
         "decode", "--model=" + ReasonerDir(), "--rounds=1000"},
        log);
    ASSERT_TRUE(bench.ok()) << bench.status();
    const uint16_t port = AwaitBenchAtWork(*bench, folder.path());
    ASSERT_NE(port, 0) << std::ifstream(log).rdbuf();

    bench->Signal(signal);

    EXPECT_EQ(bench->Wait(absl::Seconds(30)).value_or(-1), 128 + signal);
    EXPECT_EQ(HttpGet(port, "/healthz"), "");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST_F(ShutdownTest, OnlyTheFaultProgramsKnowFaults) {
  for (const char* program : {"/farkv-memory-node", "/farkv-worker"}) {
    const ProgramResult plain =
        RunProgram({BinDir() + program, "--faults=seed=1,drop=0.5"});
    EXPECT_EQ(plain.exit_code, 2) << plain.output;
    EXPECT_THAT(plain.output, HasSubstr("--faults"));
  }
  const ProgramResult faults =
      RunProgram({BinDir() + "/farkv-memory-node-faults", "--faults=nonsense",
                  "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0",
                  "--metrics-listen=127.0.0.1:0", "--data-listen=127.0.0.1:0",
                  "--t1-bytes=64MiB"});
  EXPECT_EQ(faults.exit_code, 2) << faults.output;
  EXPECT_THAT(faults.output, HasSubstr("nonsense"));
}

// By the classes' names, which a program holds that can make one of them.
TEST(ProgramsTest, FaultsAndTheFakeDeviceAreLinkedIntoTheFaultProgramsOnly) {
  const auto knows = [](const std::string& program, const std::string& name) {
    std::ifstream file(BinDir() + program, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str().find(name) != std::string::npos;
  };
  for (const char* program :
       {"/farkv-memory-node", "/farkv-worker", "/farkv-bench", "/farkvctl"}) {
    EXPECT_TRUE(knows(program, "farkv")) << program;
    EXPECT_FALSE(knows(program, "FaultTransportImpl")) << program;
    EXPECT_FALSE(knows(program, "FakeStream")) << program;
  }
  for (const char* program : {"/farkv-memory-node-faults",
                              "/farkv-worker-faults", "/farkv-bench-faults"}) {
    EXPECT_TRUE(knows(program, "FaultTransportImpl")) << program;
  }
  EXPECT_TRUE(knows("/farkv-worker-faults", "FakeStream"));
  EXPECT_TRUE(knows("/farkv-bench-faults", "FakeStream"));
}

}  // namespace
}  // namespace farkv::testing
