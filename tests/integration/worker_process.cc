#include "tests/integration/worker_process.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "bench/engine_run.h"
#include "common/base/status_macros.h"

namespace farkv::testing {
namespace {

constexpr int32_t kVocab = 70;  // of the reasoner's tokens, without padding

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Environment(const char* name, const char* fallback) {
  const char* value = getenv(name);
  return value != nullptr ? value : fallback;
}

bool HasFlag(const std::vector<std::string>& flags, const std::string& name) {
  return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) {
    return flag.rfind("--" + name + "=", 0) == 0;
  });
}

std::shared_ptr<grpc::Channel> Dial(uint64_t port) {
  return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                             grpc::InsecureChannelCredentials());
}

}  // namespace

std::string BinDir() { return Environment("FARKV_TEST_BIN_DIR", "bin"); }
std::string SourceDir() { return Environment("FARKV_TEST_SOURCE_DIR", "."); }
std::string ReasonerDir() { return SourceDir() + "/models/reasoner"; }

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "farkv-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) abort();
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(
    std::vector<std::string> flags, bool faults) {
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess());
  const std::string& folder = worker->folder_.path();
  const std::string port_file = folder + "/worker.json";
  const std::string log_file = folder + "/worker.log";
  const std::string device = Environment("FARKV_TEST_DEVICE", "");
  if (!device.empty() && !HasFlag(flags, "device")) {
    flags.push_back("--device=" + device);
  }
  faults |= HasFlag(flags, "device");
  std::vector<std::string> arguments = {
      absl::StrCat(BinDir(), "/farkv-worker", faults ? "-faults" : ""),
      "--listen=127.0.0.1:0",
      "--admin-listen=127.0.0.1:0",
      "--metrics-listen=127.0.0.1:0",
      "--model=" + ReasonerDir(),
      "--port-file=" + port_file,
      "--t0-bytes=64MiB"};
  // A busy test machine may keep a node from answering for a second.
  if (!HasFlag(flags, "heartbeat")) arguments.push_back("--heartbeat=2s");
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  FARKV_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::Start(arguments, log_file));
  FARKV_ASSIGN_OR_RETURN(auto ports, AwaitPortFile(port_file, process, log_file,
                                                   absl::Seconds(60)));
  worker->process_.emplace(std::move(process));
  worker->port_ = static_cast<uint16_t>(ports["listen"]);
  worker->metrics_port_ = static_cast<uint16_t>(ports["metrics"]);
  worker->admin_port_ = static_cast<uint16_t>(ports["admin"]);
  worker->generation_ =
      worker::v1::GenerationService::NewStub(Dial(ports["listen"]));
  worker->admin_ = admin::v1::AdminService::NewStub(Dial(worker->admin_port_));
  return worker;
}

std::string WorkerProcess::Log() const {
  return ReadAll(folder_.path() + "/worker.log");
}

Generated WorkerProcess::Generate(const worker::v1::GenerateRequest& request,
                                  absl::Duration timeout) {
  grpc::ClientContext context;
  SetDeadline(context, timeout);
  const auto reader = generation_->Generate(&context, request);
  Generated generated;
  for (worker::v1::GenerateResponse response; reader->Read(&response);) {
    generated.text += response.delta().text();
    const auto& ids = response.delta().token_ids();
    generated.tokens.insert(generated.tokens.end(), ids.begin(), ids.end());
    if (response.has_finished()) generated.finished = response.finished();
    if (response.has_error()) generated.error = response.error();
  }
  generated.status = reader->Finish();
  return generated;
}

HeldOutProgram FirstHeldOutProgram() {
  std::ifstream file(ReasonerDir() + "/heldout.jsonl");
  std::string line;
  std::getline(file, line);
  const auto json = nlohmann::json::parse(line, nullptr, false);
  return {json.value("prompt", ""), json.value("completion", "")};
}

worker::v1::GenerateRequest TextRequest(const std::string& text,
                                        int32_t max_new_tokens) {
  worker::v1::GenerateRequest request;
  request.set_text(text);
  request.mutable_stopping()->set_max_new_tokens(max_new_tokens);
  return request;
}

worker::v1::GenerateRequest ForcedRequest(uint64_t seed, int32_t prompt_tokens,
                                          int32_t forced_tokens) {
  worker::v1::GenerateRequest request;
  for (int32_t id : bench::RandomTokens(seed, 1, prompt_tokens, kVocab)) {
    request.mutable_token_ids()->add_ids(id);
  }
  for (int32_t id : bench::RandomTokens(seed, 2, forced_tokens, kVocab)) {
    request.mutable_forced_tokens()->add_ids(id);
  }
  request.mutable_stopping()->set_max_new_tokens(forced_tokens + 8);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

std::unique_ptr<admin::v1::AdminService::Stub> AdminAt(uint16_t port) {
  return admin::v1::AdminService::NewStub(Dial(port));
}

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(timeout));
}

std::vector<std::string> SlowWorkerFlags() {
  return {"--faults=seed=1,delay=1:1s", "--fetch-timeout=60s",
          "--cold=prefetch", "--hbm-ratio=0.1", "--t0-bytes=3MiB"};
}

ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         absl::Duration timeout) {
  TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  ProgramResult result;
  auto process = ChildProcess::Start(arguments, log);
  if (!process.ok()) {
    result.output = std::string(process.status().message());
    return result;
  }
  const auto code = process->Wait(timeout);
  result.exit_code = code.ok() ? *code : -1;
  result.output = ReadAll(log);
  return result;
}

namespace {

void ExpectEnded(WorkerProcess& worker, size_t num_nodes) {
  const auto code = worker.process().Wait(absl::Seconds(60));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0) << worker.Log();
  ExpectEvenAccounts(worker.Log(), num_nodes);
}

enum class End { kNone, kKilled, kOther };

End EndOf(ChildProcess& process) {
  const auto code = process.Wait(absl::ZeroDuration());
  if (!code.ok()) return End::kNone;
  return *code == 128 + SIGKILL || *code == 128 + SIGTERM ? End::kKilled
                                                          : End::kOther;
}

}  // namespace

void ExpectCleanEnd(WorkerProcess& worker, size_t num_nodes,
                    Recoveries recoveries) {
  ExpectSettled([&] { return DebtsOfWorker(worker.metrics_port()); },
                &worker.process());
  if (recoveries == Recoveries::kNone) {
    const auto metrics = ReadMetrics(worker.metrics_port());
    for (const char* name : {"farkv_worker_recoveries_total",
                             "farkv_worker_recomputed_tokens_total"}) {
      const auto found = metrics.find(name);
      ASSERT_NE(found, metrics.end()) << name;
      EXPECT_EQ(found->second, 0) << name << "\n" << worker.Log();
    }
  }
  worker.process().Signal(SIGTERM);
  ExpectEnded(worker, num_nodes);
}

void ExpectCleanEnd(bench::NodeCluster& cluster, absl::Duration timeout) {
  const absl::Status stopped = cluster.Stop(timeout);
  EXPECT_TRUE(stopped.ok()) << stopped;
}

void ExpectSurvivorsEndClean(WorkerProcess* worker, bench::NodeCluster& cluster,
                             Recoveries recoveries, absl::Duration timeout) {
  const size_t num_nodes = cluster.nodes().size();
  const End end = worker == nullptr ? End::kKilled : EndOf(worker->process());
  if (end == End::kNone) ExpectCleanEnd(*worker, num_nodes, recoveries);
  if (end == End::kOther) ExpectEnded(*worker, num_nodes);
  std::erase_if(cluster.nodes(), [](bench::NodeCluster::Node& node) {
    return EndOf(node.process) == End::kKilled;
  });
  ExpectCleanEnd(cluster, timeout);
}

}  // namespace farkv::testing
