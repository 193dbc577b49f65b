// A program that cannot start says why in one line, ends with a failure, and
// leaves nothing behind: no socket, no port file, no session on a node.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A port of this machine that somebody else listens on.
class TakenPort {
 public:
  TakenPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, generic, size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { close(fd_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  uint16_t port_ = 0;
};

std::set<std::string> FilesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    names.insert(entry.path().string());
  }
  return names;
}

class RefusedStartTest : public ::testing::Test {
 protected:
  // Both with a map folder and a port file in it, every listener on port 0;
  // a flag that comes again replaces the first.
  std::vector<std::string> Node(const std::vector<std::string>& flags) const {
    return Program(
        "/farkv-memory-node",
        {"--node-id=refused", "--t1-bytes=64MiB", "--data-listen=127.0.0.1:0"},
        flags);
  }
  std::vector<std::string> Worker(const std::vector<std::string>& flags) const {
    return Program("/farkv-worker", {"--model=" + ReasonerDir()}, flags);
  }

  void ExpectRefused(const std::vector<std::string>& command,
                     const ::testing::Matcher<std::string>& message) const {
    SCOPED_TRACE(command.back());
    const std::set<std::string> before = FilesIn(folder_.path());
    const ProgramResult result = RunProgram(command);
    EXPECT_GT(result.exit_code, 0) << result.output;
    EXPECT_LT(result.exit_code, 128) << result.output;
    EXPECT_THAT(result.output, AllOf(message, Not(HasSubstr("ready:"))));
    EXPECT_EQ(FilesIn(folder_.path()), before);
  }

  const TemporaryFolder folder_;

 private:
  std::vector<std::string> Program(
      const char* name, const std::vector<std::string>& own,
      const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {BinDir() + name};
    std::vector<std::string> defaults = {
        "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0",
        "--metrics-listen=127.0.0.1:0", "--map-dir=" + folder_.path(),
        "--port-file=" + folder_.path() + "/ports.json"};
    defaults.insert(defaults.end(), own.begin(), own.end());
    for (const std::string& flag : defaults) {
      const std::string name_of = flag.substr(0, flag.find('=') + 1);
      bool replaced = false;
      for (const std::string& other : flags) {
        replaced |= absl::StartsWith(other, name_of);
      }
      if (!replaced) command.push_back(flag);
    }
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  }
};

TEST_F(RefusedStartTest, ANodeNamesEachPortThatIsTaken) {
  const TakenPort taken;
  for (const char* flag : {"--listen=", "--admin-listen=", "--metrics-listen=",
                           "--data-listen="}) {
    ExpectRefused(Node({flag + taken.address()}), HasSubstr(taken.address()));
  }
}

TEST_F(RefusedStartTest, AWorkerNamesEachPortThatIsTaken) {
  const TakenPort taken;
  for (const char* flag :
       {"--listen=", "--admin-listen=", "--metrics-listen="}) {
    ExpectRefused(Worker({flag + taken.address()}), HasSubstr(taken.address()));
  }
}

TEST_F(RefusedStartTest, ANodeLeavesNothingBehind) {
  ExpectRefused(Node({"--t1-bytes=1000000GiB"}), HasSubstr("--t1-bytes"));
  ExpectRefused(Node({"--t1-bytes=1"}), HasSubstr("t1-bytes"));
  ExpectRefused(Node({"--map-dir=/nonexistent/dir"}),
                HasSubstr("/nonexistent/dir"));
  ExpectRefused(Node({"--port-file=/nonexistent/ports.json"}),
                HasSubstr("/nonexistent/ports.json"));
  ExpectRefused(Node({"--data-device=nonesuch"}), HasSubstr("nonesuch"));
}

// The session that it opened at its start is no more, long before its lease
// would have ended.
TEST_F(RefusedStartTest, AWorkerLeavesNoSessionOnItsNode) {
  bench::NodeClusterOptions options;
  options.bin_dir = BinDir();
  options.t1_bytes = "64MiB";
  auto cluster = bench::NodeCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  auto& node = cluster->nodes().front();
  const TakenPort taken;

  ExpectRefused(Worker({"--memory-nodes=" + cluster->Addresses().front(),
                        "--lease=10m", "--metrics-listen=" + taken.address()}),
                HasSubstr(taken.address()));

  ExpectSettled([&] { return DebtsOfNode(node.metrics_port); }, &node.process,
                absl::Seconds(10));
  ExpectCleanEnd(*cluster);
}

TEST_F(RefusedStartTest, AWorkerNamesWhatIsWrongWithItsModel) {
  ExpectRefused(Worker({"--model=/nonexistent"}),
                HasSubstr("no model at \"/nonexistent\""));
  ExpectRefused(Worker({"--memory-nodes=127.0.0.1:1"}),
                HasSubstr("127.0.0.1:1"));
  const std::string model = folder_.path() + "/model";
  fs::copy(ReasonerDir(), model);
  const std::string weights = model + "/model.safetensors";
  const uintmax_t size = fs::file_size(weights);

  fs::resize_file(weights, size - 100);
  ExpectRefused(
      Worker({"--model=" + model}),
      AllOf(HasSubstr(weights), HasSubstr("do not lie in the file's")));
  fs::resize_file(weights, 4);
  ExpectRefused(Worker({"--model=" + model}),
                AllOf(HasSubstr(weights), HasSubstr("4 bytes")));
  fs::remove(model + "/tokenizer.json");
  ExpectRefused(Worker({"--model=" + model}), HasSubstr("tokenizer.json"));
}

TEST_F(RefusedStartTest, AWorkerNamesIdsThatItsModelDoesNotHave) {
  const std::string model = folder_.path() + "/model";
  fs::copy(ReasonerDir(), model);
  const std::string config = model + "/config.json";
  std::ifstream file(config);
  auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(json.is_object());
  const auto with = [&](const char* field, int value) {
    auto changed = json;
    changed[field] = value;
    std::ofstream(config) << changed;
    return Worker({"--model=" + model});
  };

  ExpectRefused(with("vocab_size", 72), AllOf(HasSubstr("ids up to 72"),
                                              HasSubstr("vocab_size of 72")));
  ExpectRefused(with("eos_token_id", 5000),
                AllOf(HasSubstr("eos_token_id is 5000"), HasSubstr("79")));
  ExpectRefused(with("head_dim", 48),
                AllOf(HasSubstr("[256, 128]"), HasSubstr("[192, 128]")));
  json["architectures"] = {"MambaForCausalLM"};
  ExpectRefused(with("vocab_size", 80), HasSubstr("MambaForCausalLM"));
}

}  // namespace
}  // namespace farkv::testing
