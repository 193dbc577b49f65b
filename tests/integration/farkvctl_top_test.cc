// `farkvctl top` over real processes: as a stream, and on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/node_cluster.h"
#include "tests/integration/pty_program.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// How xterm is told to show its own screen again.
constexpr char kScreenLeft[] = "\x1b[?1049l";

class FarkvctlTopTest : public ::testing::Test {
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

  std::vector<std::string> Top(std::vector<std::string> flags,
                               const std::string& workers = "none") const {
    std::vector<std::string> words = {BinDir() + "/farkvctl", "top",
                                      "--nodes=" + node_,
                                      "--workers=" + workers};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }

  std::optional<bench::NodeCluster> cluster_;
  std::string node_;
};

std::vector<nlohmann::json> Lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (const auto& line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_TRUE(lines.back().is_object()) << line;
  }
  return lines;
}

// No rate is negative; the largest.
double Largest(const std::vector<nlohmann::json>& rounds, const char* table,
               const char* rate) {
  double largest = 0;
  for (const auto& round : rounds) {
    const auto& item = round[table].is_array() ? round[table][0] : round[table];
    if (item[rate].is_null()) continue;
    EXPECT_GE(item[rate].get<double>(), 0) << rate;
    largest = std::max(largest, item[rate].get<double>());
  }
  return largest;
}

TEST_F(FarkvctlTopTest, TheStreamShowsWhatAWorkerAndItsNodeDo) {
  auto worker = WorkerProcess::Start(
      {"--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ","),
       "--map-dir=" + cluster_->map_dir(), "--hbm-ratio=0.3",
       "--granularity=16", "--recent=16", "--interval=16", "--t0-bytes=3MiB"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const std::string address =
      absl::StrCat("127.0.0.1:", (*worker)->admin_port());
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/top.log";
  auto top = ChildProcess::Start(
      Top({"-o", "json", "--interval=300ms", "--count=8"}, address), log);
  ASSERT_TRUE(top.ok()) << top.status();
  for (uint64_t seed = 1; !top->Wait(absl::ZeroDuration()).ok(); ++seed) {
    const Generated done = (*worker)->Generate(ForcedRequest(seed, 100, 200));
    ASSERT_TRUE(done.status.ok()) << done.status.error_message();
  }

  EXPECT_EQ(top->Wait(absl::ZeroDuration()).value_or(-1), 0);
  std::ifstream file(log);
  const auto rounds = Lines({std::istreambuf_iterator<char>(file), {}});
  ASSERT_EQ(rounds.size(), 8u);
  EXPECT_TRUE(rounds[0]["total"]["storedBytesPerSecond"].is_null());
  EXPECT_GT(Largest(rounds, "total", "storedBytesPerSecond"), 0);
  EXPECT_GT(Largest(rounds, "nodes", "storedBytesPerSecond"), 0);
  EXPECT_GT(Largest(rounds, "workers", "tokensPerSecond"), 0);
  EXPECT_GE(Largest(rounds, "workers", "promotedTokensPerSecond"), 0);
  EXPECT_GE(Largest(rounds, "workers", "lateFetchesPerSecond"), 0);
  EXPECT_GT(Largest(rounds, "workers", "running"), 0);
  EXPECT_GT(Largest(rounds, "workers", "t0UsedShare"), 0);
  const auto& last = rounds.back();
  EXPECT_EQ(last["nodes"][0]["node"], "node-0");
  EXPECT_EQ(last["nodes"][0]["transports"][0]["transport"], "map");
  EXPECT_GE(last["nodes"][0]["sessions"], 1);
  EXPECT_EQ(last["pools"][0]["owner"], "node-0");
  EXPECT_EQ(last["pools"][0]["tier"], "T1");
  EXPECT_EQ(last["pools"][0]["capacityBytes"], 64 << 20);
  EXPECT_EQ(last["pools"][1]["tier"], "T0");
  ExpectCleanEnd(**worker, 1);
}

TEST_F(FarkvctlTopTest, TheStreamIsABlockForEachRound) {
  const ProgramResult shown = RunProgram(Top({"--interval=1ms", "--count=3"}));

  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  const std::vector<std::string> blocks = absl::StrSplit(shown.output, "---\n");
  ASSERT_EQ(blocks.size(), 3u) << shown.output;
  for (const std::string& block : blocks) {
    EXPECT_THAT(block, AllOf(HasSubstr("1/1 nodes, 0/0 workers"),
                             ContainsRegex("node-0 +ready +0 "),
                             ContainsRegex("node-0 +T1 +.* 64MiB")));
  }
}

TEST_F(FarkvctlTopTest, ANodeThatIsFrozenIsSilentAndOneThatIsGoneUnreachable) {
  cluster_->nodes()[0].process.Signal(SIGSTOP);
  const ProgramResult frozen = RunProgram(Top({"--count=1", "--timeout=1s"}));
  cluster_->nodes()[0].process.Signal(SIGCONT);
  const ProgramResult gone = RunProgram(Top({"--count=1"}, "127.0.0.1:1"));

  EXPECT_EQ(frozen.exit_code, 4);
  EXPECT_THAT(frozen.output, AllOf(ContainsRegex(node_ + " +silent +- +-"),
                                   HasSubstr("0/1 nodes")));
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_THAT(gone.output,
              AllOf(ContainsRegex("node-0 +ready"),
                    ContainsRegex("127.0.0.1:1 +unreachable +- +-")));
}

TEST_F(FarkvctlTopTest, AScreenShowsNodesAndPoolsUntilQ) {
  PtyProgram top(Top({"--interval=200ms"}), "xterm", 24, 100);

  EXPECT_TRUE(top.Await("OWNER")) << top.output();
  EXPECT_TRUE(top.Await("node-0")) << top.output();
  EXPECT_TRUE(top.Await("T1"));
  EXPECT_FALSE(top.IsRestored());
  top.Type("\ts");
  EXPECT_TRUE(top.Await("by owner")) << top.output();
  top.Type("q");

  const int status = top.End();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(top.output(), HasSubstr(kScreenLeft));
  EXPECT_TRUE(top.IsRestored());
}

TEST_F(FarkvctlTopTest, AScreenOfAnySizeDoes) {
  PtyProgram top(Top({"--interval=100ms"}), "xterm", 1, 1);
  ASSERT_TRUE(top.Await("\x1b[?1049h")) << top.output();
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {2, 3}, {3, 200}, {200, 3}, {5, 20}}) {
    top.Resize(static_cast<unsigned short>(rows),
               static_cast<unsigned short>(columns));
    top.Type("\tszrkj");
  }
  top.Resize(24, 100);
  top.Type("z");

  EXPECT_TRUE(top.Await("node-0")) << top.output();
  top.Type("q");
  const int status = top.End();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(FarkvctlTopTest, ASignalPutsTheTerminalBackAndEndsTheProgram) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    PtyProgram top(Top({}), "xterm", 24, 100);
    ASSERT_TRUE(top.Await("node-0")) << top.output();

    top.Signal(signal);

    const int status = top.End();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_THAT(top.output(), HasSubstr(kScreenLeft));
    EXPECT_TRUE(top.IsRestored());
  }
}

TEST_F(FarkvctlTopTest, AFrozenNodeDoesNotFreezeTheScreen) {
  PtyProgram top(Top({"--interval=200ms"}), "xterm", 24, 100);
  ASSERT_TRUE(top.Await("ready")) << top.output();
  cluster_->nodes()[0].process.Signal(SIGSTOP);

  EXPECT_TRUE(top.Await("silent")) << top.output();
  top.Type("s");
  EXPECT_TRUE(top.Await("by node")) << top.output();
  top.Type("q");

  const int status = top.End();
  cluster_->nodes()[0].process.Signal(SIGCONT);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 4) << status;
}

TEST_F(FarkvctlTopTest, ATerminalThatNobodyKnowsGetsTheStream) {
  for (const char* term : {"nosuchterminal", "", "dumb"}) {
    PtyProgram top(Top({"--count=1"}), term, 24, 100);

    const int status = top.End();

    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_THAT(top.output(),
                AllOf(HasSubstr("hint: "), HasSubstr("TERM"),
                      ContainsRegex("node-0 +ready"), Not(HasSubstr("\x1b"))));
    EXPECT_TRUE(top.IsRestored());
  }
}

TEST_F(FarkvctlTopTest, WhoAsksForTheStreamOnATerminalGetsIt) {
  PtyProgram top(Top({"--count=1", "--plain"}), "xterm", 24, 100);

  EXPECT_EQ(top.End(), 0);
  EXPECT_THAT(top.output(),
              AllOf(ContainsRegex("node-0 +ready"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace farkv::testing
