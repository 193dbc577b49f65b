// Starting, refusing to start, and stopping the programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
                HasSubstr("/nonexistent/config.json"));
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
  ASSERT_TRUE(AwaitPortFile(folder.path() + "/third", *third,
                            folder.path() + "/third.log", absl::Seconds(60))
                  .ok());

  third->Signal(SIGTERM);
  EXPECT_EQ(third->Wait(absl::Seconds(60)).value_or(-1), 0);
  EXPECT_FALSE(std::filesystem::exists(socket));
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
  const auto partial = RunProgram(
      {ctl, "get", "nodes", "--nodes=127.0.0.1:1," + address, "--timeout=2s"});
  EXPECT_EQ(partial.exit_code, 3);
  const auto none =
      RunProgram({ctl, "get", "nodes", "--nodes=127.0.0.1:1", "--timeout=2s"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.output, HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(RunProgram({ctl, "get", "nonsense"}).exit_code, 2);
  EXPECT_EQ(RunProgram({ctl}).exit_code, 2);
}

}  // namespace
}  // namespace farkv::testing
