// Starting, refusing to start, and stopping the programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>

#include "absl/strings/str_cat.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> NodeCommand(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {
      BinDir() + "/farkv-memory-node", "--listen=127.0.0.1:0",
      "--admin-listen=127.0.0.1:0",    "--metrics-listen=127.0.0.1:0",
      "--data-listen=127.0.0.1:0",     "--t1-bytes=64MiB"};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

std::vector<std::string> WorkerCommand(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {
      BinDir() + "/farkv-worker", "--listen=127.0.0.1:0",
      "--admin-listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0"};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

void ExpectRefusal(const std::vector<std::string>& command,
                   const ::testing::Matcher<std::string>& message) {
  const ProgramResult result = RunProgram(command);
  EXPECT_GT(result.exit_code, 0) << command.back();
  EXPECT_LT(result.exit_code, 128) << command.back() << "\n" << result.output;
  EXPECT_THAT(result.output, message);
}

TEST(ProgramsTest, AWorkerRefusesBadFlagsByName) {
  const std::string model = "--model=" + ReasonerDir();
  ExpectRefusal(WorkerCommand({model, "--hbm-ratio=1.5"}),
                AllOf(HasSubstr("hbm-ratio"), HasSubstr("1.5")));
  ExpectRefusal(WorkerCommand({model, "--t0-bytes=64"}),
                AllOf(HasSubstr("t0-bytes"), HasSubstr("64")));
  ExpectRefusal(WorkerCommand({model, "--granularity=7"}),
                AllOf(HasSubstr("granularity"), HasSubstr("7")));
  ExpectRefusal(WorkerCommand({model, "--stripe=100"}),
                AllOf(HasSubstr("stripe"), HasSubstr("100")));
  ExpectRefusal(WorkerCommand({model, "--replicas=2"}),
                AllOf(HasSubstr("replicas"), HasSubstr("2")));
  ExpectRefusal(WorkerCommand({model, "--device=tpu"}), HasSubstr("tpu"));
  ExpectRefusal(WorkerCommand({model, "--no-such-flag"}),
                HasSubstr("no-such-flag"));
  ExpectRefusal(WorkerCommand({model, "--device=fake"}), HasSubstr("fake"));
  ExpectRefusal(WorkerCommand({}), HasSubstr("--model"));
}

TEST(ProgramsTest, AWorkerNamesAMissingModelFile) {
  ExpectRefusal(WorkerCommand({"--model=/nonexistent"}),
                HasSubstr("no model at \"/nonexistent\""));
}

TEST(ProgramsTest, AWorkerNamesAnUnreachableNode) {
  ExpectRefusal(
      WorkerCommand({"--model=" + ReasonerDir(), "--memory-nodes=127.0.0.1:1"}),
      HasSubstr("127.0.0.1:1"));
}

TEST(ProgramsTest, ATakenPortIsNamed) {
  bench::NodeClusterOptions options;
  options.bin_dir = BinDir();
  options.t1_bytes = "64MiB";
  auto cluster = bench::NodeCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const uint16_t taken = cluster->nodes().front().port;

  auto command = NodeCommand({});
  command[1] = absl::StrCat("--listen=127.0.0.1:", taken);
  ExpectRefusal(command, HasSubstr(absl::StrCat(taken)));
  command = WorkerCommand({"--model=" + ReasonerDir()});
  command[1] = absl::StrCat("--listen=127.0.0.1:", taken);
  ExpectRefusal(command, HasSubstr(absl::StrCat(taken)));
  ExpectCleanEnd(*cluster);
}

// A node whose log is read while it starts.
class StartingNode {
 public:
  explicit StartingNode(std::vector<std::string> flags) {
    flags.push_back("--port-file=" + port_file_);
    auto process = ChildProcess::Start(NodeCommand(flags), log_file_);
    EXPECT_TRUE(process.ok()) << process.status();
    if (process.ok()) process_.emplace(*std::move(process));
  }

  ChildProcess& process() { return *process_; }
  // After a SIGSTOP: until none of its threads runs.
  void AwaitStopped() {
    siginfo_t state{};
    const auto pid = static_cast<id_t>(process_->pid());
    waitid(P_PID, pid, &state, WSTOPPED | WEXITED | WNOWAIT);
  }
  bool HasPortFile() const { return std::filesystem::exists(port_file_); }
  bool LeftNothingButItsLog() const {
    const std::filesystem::directory_iterator files(folder_.path());
    return std::distance(begin(files), end(files)) == 1;
  }
  std::string Log() const {
    std::ifstream file(log_file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The port of /metrics, which is open before the node is ready; 0 when the
  // log does not name it in time.
  uint16_t AwaitMetricsPort() {
    const std::regex line("progress in /metrics on port (\\d+)\n");
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (absl::Now() < end) {
      std::smatch match;
      const std::string log = Log();
      if (std::regex_search(log, match, line)) {
        return static_cast<uint16_t>(std::stoi(match.str(1)));
      }
      if (process_->Wait(absl::Milliseconds(5)).ok()) break;
    }
    ADD_FAILURE() << Log();
    return 0;
  }

 private:
  const TemporaryFolder folder_;
  const std::string log_file_ = folder_.path() + "/log";
  const std::string port_file_ = folder_.path() + "/ports.json";
  std::optional<ChildProcess> process_;
};

bool IsReady(uint16_t port) {
  return HttpGet(port, "/readyz").find("200 OK") != std::string::npos;
}

TEST(ProgramsTest, ANodeIsAliveWhileItPrefaultsAndReadyOnlyAfterwards) {
  constexpr double kPool = 512.0 * 1024 * 1024;
  StartingNode node({"--t1-bytes=512MiB", "--threads=1"});
  const uint16_t port = node.AwaitMetricsPort();
  EXPECT_THAT(HttpGet(port, "/healthz"), HasSubstr("200 OK"));

  const absl::Time end = absl::Now() + absl::Seconds(60);
  double done = 0;
  bool ready = false;
  while (!ready && absl::Now() < end) {
    ready = IsReady(port);
    const double now = ReadMetrics(port)["farkv_node_pool_slab_bytes"];
    EXPECT_GE(now, done);
    done = now;
    EXPECT_TRUE(ready || !node.HasPortFile() || IsReady(port));
  }

  EXPECT_TRUE(ready) << node.Log();
  ExpectSettled([port] { return DebtsOfNode(port); }, &node.process());
  EXPECT_EQ(done, kPool);
  EXPECT_EQ(ReadMetrics(port)["farkv_node_pool_ready_bytes"], kPool);
  EXPECT_THAT(node.Log(), AllOf(HasSubstr("prefaulting 512MiB"),
                                HasSubstr("prefaulted 512MiB of 512MiB"),
                                HasSubstr("GiB/s")));
}

// A node that is stopped prefaults no further, so its log tells whether the
// signal comes in time; a node that was quicker proves nothing.
TEST(ProgramsTest, SigtermEndsANodeThatPrefaults) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    StartingNode node({"--t1-bytes=1GiB", "--threads=1"});
    node.AwaitMetricsPort();
    node.process().Signal(SIGSTOP);
    node.AwaitStopped();
    const bool in_time =
        node.Log().find("prefaulted 1GiB of 1GiB") == std::string::npos;

    node.process().Signal(SIGTERM);
    node.process().Signal(SIGCONT);

    EXPECT_EQ(node.process().Wait(absl::Seconds(60)).value_or(-1), 0);
    if (!in_time) continue;
    EXPECT_THAT(node.Log(), Not(HasSubstr("ready:")));
    EXPECT_TRUE(node.LeftNothingButItsLog());
    return;
  }
  ADD_FAILURE() << "each node had prefaulted before it could be stopped";
}

TEST(ProgramsTest, ANodeThatAsksForMoreThanThereIsSaysSoAtTheStart) {
  ExpectRefusal(NodeCommand({"--t1-bytes=1000000GiB"}),
                AllOf(HasSubstr("--t1-bytes"), HasSubstr("1000000GiB"),
                      HasSubstr("are available here")));
  std::vector<std::string> few_files = {"/usr/bin/prlimit", "--nofile=260:260"};
  for (const std::string& word : NodeCommand({"--t1-bytes=1GiB"})) {
    few_files.push_back(word);
  }
  ExpectRefusal(few_files, AllOf(HasSubstr("16 slabs"), HasSubstr("260 open"),
                                 HasSubstr("256MiB")));
}

TEST(ProgramsTest, APortFileThatCannotBeWrittenIsNoticedBeforeReady) {
  const std::string flag = "--port-file=/nonexistent/ports.json";
  const auto refusal =
      AllOf(HasSubstr("/nonexistent/ports.json"), Not(HasSubstr("ready:")));
  ExpectRefusal(NodeCommand({flag}), refusal);
  ExpectRefusal(WorkerCommand({"--model=" + ReasonerDir(), flag}), refusal);
}

TEST(ProgramsTest, ANodeRefusesBadFlagsByName) {
  ExpectRefusal(NodeCommand({"--t1-bytes=1"}), HasSubstr("t1-bytes"));
  ExpectRefusal(NodeCommand({"--map-dir=/nonexistent/dir"}),
                HasSubstr("/nonexistent/dir"));
  ExpectRefusal(NodeCommand({"--high-watermark=2"}),
                HasSubstr("high-watermark"));
}

TEST(ProgramsTest, TheSocketOfADeadNodeIsReplacedThatOfALiveOneIsNot) {
  TemporaryFolder folder;
  const std::string socket = folder.path() + "/twin.sock";
  const auto start = [&](const std::string& name) {
    return ChildProcess::Start(
        NodeCommand({"--node-id=twin", "--map-dir=" + folder.path(),
                     absl::StrCat("--port-file=", folder.path(), "/", name)}),
        folder.path() + "/" + name + ".log");
  };
  auto first = start("first");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(AwaitPortFile(folder.path() + "/first", *first,
                            folder.path() + "/first.log", absl::Seconds(60))
                  .ok());

  auto second = start("second");
  EXPECT_GT(second->Wait(absl::Seconds(60)).value_or(-1), 0);
  first->Signal(SIGKILL);
  ASSERT_TRUE(first->Wait(absl::Seconds(60)).ok());
  ASSERT_TRUE(std::filesystem::exists(socket));
  auto third = start("third");
  auto ports = AwaitPortFile(folder.path() + "/third", *third,
                             folder.path() + "/third.log", absl::Seconds(60));
  ASSERT_TRUE(ports.ok()) << ports.status();
  const auto metrics = static_cast<uint16_t>((*ports)["metrics"]);
  ExpectSettled([metrics] { return DebtsOfNode(metrics); }, &*third);

  third->Signal(SIGTERM);
  EXPECT_EQ(third->Wait(absl::Seconds(60)).value_or(-1), 0);
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/third"));
}

TEST(ProgramsTest, FarkvctlShowsNodesAndFailsWhenNoneAnswers) {
  bench::NodeClusterOptions options;
  options.bin_dir = BinDir();
  options.t1_bytes = "64MiB";
  auto cluster = bench::NodeCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::string address = cluster->AdminAddresses().front();
  const std::string ctl = BinDir() + "/farkvctl";

  const auto good = RunProgram({ctl, "get", "nodes", "--nodes=" + address});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.output, HasSubstr("node-0"));
  const auto json =
      RunProgram({ctl, "get", "sessions", "--nodes=" + address, "-o", "json"});
  EXPECT_THAT(json.output, HasSubstr("\"apiVersion\": \"farkv/v1\""));
  const auto partial =
      RunProgram({ctl, "get", "nodes", "--nodes=127.0.0.1:1," + address});
  EXPECT_EQ(partial.exit_code, 3);
  const auto none = RunProgram({ctl, "get", "nodes", "--nodes=127.0.0.1:1"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.output, HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(RunProgram({ctl, "get", "nonsense"}).exit_code, 2);
  EXPECT_EQ(RunProgram({ctl}).exit_code, 2);
  ExpectCleanEnd(*cluster);
}

}  // namespace
}  // namespace farkv::testing
