// farkvctl against real nodes and a worker: what it shows, drains and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class FarkvctlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bench::NodeClusterOptions options;
    options.bin_dir = BinDir();
    options.t1_bytes = "64MiB";
    auto cluster = bench::NodeCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_.emplace(*std::move(cluster));
    node_ = cluster_->AdminAddresses().front();
  }
  void TearDown() override {
    if (cluster_) ExpectCleanEnd(*cluster_);
  }

  // With the node as --nodes and no workers.
  ProgramResult Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), BinDir() + "/farkvctl");
    words.push_back("--nodes=" + node_);
    words.push_back("--workers=none");
    return RunProgram(words);
  }

  std::optional<bench::NodeCluster> cluster_;
  std::string node_;
};

TEST_F(FarkvctlTest, EveryFormShowsTheSameNode) {
  for (const char* form : {"table", "wide", "json", "yaml", "name"}) {
    const ProgramResult shown = Ctl({"get", "nodes", "-o", form});
    EXPECT_EQ(shown.exit_code, 0) << shown.output;
    EXPECT_THAT(shown.output, HasSubstr("node-0")) << form;
  }
  EXPECT_EQ(Ctl({"get", "nodes", "-o", "name"}).output, "node/node-0\n");
  EXPECT_THAT(Ctl({"get", "nodes", "--no-headers"}).output,
              Not(HasSubstr("NODE")));
}

TEST_F(FarkvctlTest, WatchAsksAgain) {
  const ProgramResult watched =
      Ctl({"get", "pools", "-o", "name", "--watch", "--watch-interval=1ms",
           "--watch-count=3"});

  EXPECT_EQ(watched.exit_code, 0);
  EXPECT_EQ(watched.output,
            "pool/node-0/T1\n---\npool/node-0/T1\n---\npool/node-0/T1\n");
}

TEST_F(FarkvctlTest, TheSettingsInEffectAreShown) {
  const ProgramResult view = Ctl({"config", "view", "-o", "json"});

  const auto document = nlohmann::json::parse(view.output, nullptr, false);
  ASSERT_TRUE(document.is_object()) << view.output;
  std::string t1;
  for (const auto& item : document["items"]) {
    if (item["flag"] == "t1-bytes") t1 = item["value"];
  }
  EXPECT_EQ(t1, "64MiB");
}

TEST_F(FarkvctlTest, ANodeWithoutSessionsIsDrainedAtOnceAndComesBack) {
  EXPECT_EQ(Ctl({"drain", node_}).exit_code, 2);
  EXPECT_THAT(Ctl({"get", "nodes"}).output, HasSubstr("ready"));

  const ProgramResult drained = Ctl({"drain", node_, "--yes"});
  EXPECT_EQ(drained.exit_code, 0);
  EXPECT_EQ(drained.output, node_ + ": drained, 0 left\n");
  EXPECT_THAT(Ctl({"get", "nodes"}).output, HasSubstr("draining"));

  EXPECT_EQ(Ctl({"undrain", node_}).exit_code, 0);
  EXPECT_THAT(Ctl({"get", "nodes"}).output, HasSubstr("ready"));
}

TEST_F(FarkvctlTest, AWorkersSessionKeepsANodeFromBeingDrained) {
  auto worker = WorkerProcess::Start(
      {"--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ",")});
  ASSERT_TRUE(worker.ok()) << worker.status();

  const ProgramResult leases = Ctl({"get", "leases", "--no-headers"});
  const ProgramResult begun = Ctl({"drain", node_, "--yes", "--no-wait"});

  EXPECT_THAT(leases.output, AllOf(HasSubstr(node_), HasSubstr("worker-")));
  EXPECT_EQ(begun.exit_code, 0);
  EXPECT_EQ(begun.output, node_ + ": draining, 1 left\n");
  EXPECT_EQ(Ctl({"undrain", node_}).exit_code, 0);
  ExpectCleanEnd(**worker, 1);
}

TEST_F(FarkvctlTest, VerifyCountsWhatItChecked) {
  const ProgramResult verified = Ctl({"verify"});

  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_THAT(verified.output, ContainsRegex(node_ + " +0 +0 +0"));
}

TEST_F(FarkvctlTest, ANodeThatIsTakenForAWorkerSaysSo) {
  const ProgramResult asked = RunProgram(
      {BinDir() + "/farkvctl", "get", "workers", "--workers=" + node_});

  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_THAT(asked.output,
              AllOf(HasSubstr("node-0"), HasSubstr("not a worker")));
}

TEST_F(FarkvctlTest, PreflightFailsOnAPortThatIsTaken) {
  const ProgramResult checked =
      Ctl({"preflight", "--role=worker", "--listen=" + node_});

  EXPECT_EQ(checked.exit_code, 4);
  EXPECT_THAT(checked.output, ContainsRegex("port +fail +" + node_));
}

TEST(FarkvctlCompletionTest, BashOffersNounsFlagsAndValues) {
  const std::string script = absl::StrCat(
      "source <('", BinDir(),
      "/farkvctl' completion bash)\n"
      "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$((${#COMP_WORDS[@]}-1));\n"
      "  _farkvctl; echo \"${COMPREPLY[*]}\"; }\n"
      "try farkvctl get po\n"
      "try farkvctl get nodes -o j\n"
      "try farkvctl get nodes --output = y\n"
      "try farkvctl --nodes get get seq\n"
      "try farkvctl drain --y\n");

  const ProgramResult result = RunProgram({"/bin/bash", "-c", script});

  EXPECT_EQ(result.output, "pools\njson\nyaml\nsequences\n--yes\n");
}

}  // namespace
}  // namespace farkv::testing
