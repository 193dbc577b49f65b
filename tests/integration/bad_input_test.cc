// What a new user gets wrong: each program says what and ends with the exit
// code that farkvctl --help and the others' --help name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "absl/strings/str_cat.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Ctl() { return BinDir() + "/farkvctl"; }

std::string AdminAddress(const WorkerProcess& worker) {
  return absl::StrCat("127.0.0.1:", worker.admin_port());
}

TEST(BadInputTest, FarkvctlRefusesItWithExitCode2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"generate", "--prompt=a", "--seed", "-1"}, "--seed: '-1'"},
      {{"generate", "--prompt=a", "--prompt-ids=1"}, "2 given"},
      {{"generate"}, "none given"},
      {{"generate", "--prompt=a", "--worker=h:99999"}, "h:99999"},
      {{"generate", "--prompt=a", "--request-id=a\nb"}, "'a\\nb'"},
      {{"generate", "--prompt=\xff"}, "--prompt: is not UTF-8"},
      {{"generate", "--prompt=a", "--top-k=x"}, "--top-k"},
      {{"get", "nodes", "--nodes=h:99999"}, "h:99999"},
      {{"get", "nodes", "--nodes=,"}, "--nodes: ','"},
      {{"get", "nodes", "-o", "xml"}, "xml"},
      {{"get", "nodes", "--timeout=9999999h"}, "9999999h"},
      {{"describe", "sequence", "a\nb"}, "'a\\nb'"},
      {{"describe", "sequence"}, "id"},
      {{"get", "nonsense"}, "'nonsense' is not known here"},
      {{"generate", "--prompt=", "--ignore-eos"}, "--prompt: is empty"},
  };
  for (const auto& [arguments, message] : cases) {
    std::vector<std::string> command = {Ctl()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const ProgramResult result = RunProgram(command);
    EXPECT_EQ(result.exit_code, 2) << message << "\n" << result.output;
    EXPECT_THAT(result.output, HasSubstr(message));
  }
  const ProgramResult folder =
      RunProgram({Ctl(), "generate", "--prompt-file=/"});
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_THAT(folder.output, HasSubstr("is a directory"));
}

TEST(BadInputTest, FarkvctlSaysThatAWorkerIsNoNode) {
  auto worker = WorkerProcess::Start({});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const std::string address = AdminAddress(**worker);

  const auto nodes = RunProgram({Ctl(), "get", "nodes", "--nodes=" + address});
  EXPECT_EQ(nodes.exit_code, 1);
  EXPECT_THAT(nodes.output, AllOf(HasSubstr(address), HasSubstr("is worker ")));
  const auto sessions =
      RunProgram({Ctl(), "get", "sessions", "--nodes=" + address});
  EXPECT_EQ(sessions.exit_code, 1);
  EXPECT_THAT(sessions.output, HasSubstr("ask a memory node"));
  const auto unknown = RunProgram(
      {Ctl(), "describe", "sequence", "nobody", "--workers=" + address});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.output, HasSubstr("\"nobody\""));
  const auto partial = RunProgram(
      {Ctl(), "get", "pools", "--nodes=127.0.0.1:1", "--workers=" + address});
  EXPECT_EQ(partial.exit_code, 3) << partial.output;
  ExpectCleanEnd(**worker, 0);
}

TEST(BadInputTest, ATakenPortIsSaidInOneLine) {
  auto worker = WorkerProcess::Start({});
  ASSERT_TRUE(worker.ok()) << worker.status();

  const auto second = RunProgram(
      {BinDir() + "/farkv-memory-node", "--log-level=error", "--t1-bytes=64MiB",
       "--admin-listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
       absl::StrCat("--listen=127.0.0.1:", (*worker)->port())});

  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.output,
            absl::StrCat("farkv-memory-node: cannot listen on 127.0.0.1:",
                         (*worker)->port(),
                         ": another process listens on that port\n"));
  ExpectCleanEnd(**worker, 0);
}

TEST(BadInputTest, AnAddressOfAnotherMachineIsAUsageError) {
  const auto result = RunProgram(
      {BinDir() + "/farkv-memory-node", "--log-level=error", "--t1-bytes=64MiB",
       "--metrics-listen=127.0.0.1:0", "--admin-listen=192.0.2.77:7402"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output,
            "farkv-memory-node: cannot listen on 192.0.2.77:7402: this machine "
            "does not have that address\n");
}

// One running sequence on one node, and what operators see of its session.
class SessionsShownTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bench::NodeClusterOptions options;
    options.bin_dir = BinDir();
    options.t1_bytes = "256MiB";
    auto cluster = bench::NodeCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_.emplace(*std::move(cluster));
    auto worker = WorkerProcess::Start(
        {"--memory-nodes=" + cluster_->Addresses().front()});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    SetDeadline(context_, absl::Seconds(120));
    auto request = TextRequest("a1;", 7000);
    request.set_request_id("watched");
    request.mutable_stopping()->set_ignore_eos(true);
    running_ = worker_->generation().Generate(&context_, request);
    worker::v1::GenerateResponse response;
    ASSERT_TRUE(running_->Read(&response));
  }

  void TearDown() override {
    context_.TryCancel();
    if (running_ != nullptr) running_->Finish();
    if (worker_ == nullptr) return;
    ExpectCleanEnd(*worker_, 1);
    ExpectCleanEnd(*cluster_);
  }

  std::optional<bench::NodeCluster> cluster_;
  std::unique_ptr<WorkerProcess> worker_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<worker::v1::GenerateResponse>> running_;
};

TEST_F(SessionsShownTest, AHandleIsShownEverywhereAndFindsTheSequence) {
  const std::string node = cluster_->AdminAddresses().front();
  const std::string worker = AdminAddress(*worker_);
  const std::regex line("\\nwatched +([0-9a-f]{8})  ");
  std::smatch found;

  const auto sequences =
      RunProgram({Ctl(), "get", "sequences", "--workers=" + worker});
  const auto sessions =
      RunProgram({Ctl(), "get", "sessions", "--nodes=" + node});

  ASSERT_TRUE(std::regex_search(sequences.output, found, line))
      << sequences.output;
  const std::string handle = found[1].str();
  EXPECT_THAT(sessions.output, HasSubstr("\n" + handle + "  "));
  for (const std::string& name : {handle, std::string("watched")}) {
    const auto shown = RunProgram(
        {Ctl(), "describe", "sequence", name, "--workers=" + worker});
    EXPECT_EQ(shown.exit_code, 0) << shown.output;
    EXPECT_THAT(shown.output, HasSubstr("Session:    " + handle + "\n"));
  }
  const std::regex whole_id("[0-9a-f]{32}");
  EXPECT_FALSE(std::regex_search(sequences.output, whole_id));
  EXPECT_FALSE(std::regex_search(sessions.output, whole_id));
  EXPECT_FALSE(std::regex_search(worker_->Log(), whole_id));
}

}  // namespace
}  // namespace farkv::testing
