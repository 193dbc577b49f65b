// Real processes: one or two memory nodes and a worker, over loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/node_cluster.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using worker::v1::GenerateRequest;

// Nodes and a worker; the end of each test checks that nothing is left.
class GenerationTest : public ::testing::Test {
 protected:
  void StartNodes(int num_nodes) {
    bench::NodeClusterOptions options;
    options.bin_dir = BinDir();
    options.num_nodes = num_nodes;
    options.t1_bytes = "256MiB";
    auto cluster = bench::NodeCluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_.emplace(*std::move(cluster));
  }

  void Start(int num_nodes, std::vector<std::string> flags) {
    StartNodes(num_nodes);
    StartWorker(std::move(flags));
  }

  // See SlowWorkerFlags.
  void StartSlow(const std::vector<std::string>& more_flags) {
    StartNodes(1);
    std::vector<std::string> flags = SlowWorkerFlags();
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    StartWorker(std::move(flags), /*faults=*/true);
  }

  void StartWorker(std::vector<std::string> flags, bool faults = false) {
    ASSERT_TRUE(cluster_.has_value());
    if (!cluster_->nodes().empty()) {
      flags.push_back("--memory-nodes=" +
                      absl::StrJoin(cluster_->Addresses(), ","));
    }
    auto worker = WorkerProcess::Start(flags, faults);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }

  // Without nodes.
  WorkerProcess& StartFull() {
    auto worker = WorkerProcess::Start({});
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (worker.ok()) full_ = *std::move(worker);
    return *full_;
  }

  void TearDown() override {
    if (full_ != nullptr) ExpectCleanEnd(*full_, 0);
    if (worker_ == nullptr) return;
    ExpectCleanEnd(*worker_, cluster_->nodes().size());
    ExpectCleanEnd(*cluster_);
  }

  // The worker has stopped working on its requests, each for `tokens`, before
  // it made that many: the client alone may have given up.
  void ExpectEndedEarly(double tokens) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    worker::v1::GetLoadResponse load;
    do {
      ASSERT_LT(absl::Now(), end);
      grpc::ClientContext context;
      SetDeadline(context, absl::Seconds(10));
      ASSERT_TRUE(worker_->generation().GetLoad(&context, {}, &load).ok());
    } while (load.running() > 0);
    auto metrics = ReadMetrics(worker_->metrics_port());
    EXPECT_GE(metrics["farkv_worker_requests_total"], 1);
    EXPECT_GT(metrics["farkv_worker_generated_tokens_total"], 0);
    EXPECT_LT(metrics["farkv_worker_generated_tokens_total"], tokens);
  }

  std::optional<bench::NodeCluster> cluster_;
  std::unique_ptr<WorkerProcess> worker_, full_;
};

// T0 holds what stays hot and not the whole context, so a step waits for the
// stores it needs and cold rows are certain.
constexpr char kScarceT0[] = "--t0-bytes=2MiB";
constexpr int32_t kLongTokens = 1500;

TEST_F(GenerationTest, FetchedColdRowsChangeNoToken) {
  Start(1, {"--hbm-ratio=0.1", "--cold=prefetch", kScarceT0});
  WorkerProcess& full = StartFull();
  const GenerateRequest request = ForcedRequest(7, 20, kLongTokens);

  const Generated cold = worker_->Generate(request);
  const Generated hot = full.Generate(request);

  ASSERT_TRUE(cold.status.ok()) << cold.status.error_message();
  ASSERT_TRUE(cold.finished.has_value());
  EXPECT_EQ(cold.tokens, hot.tokens);
  EXPECT_GT(cold.finished->tiers().cold_rows_fetched(), 0);
  EXPECT_EQ(cold.finished->tiers().cold_rows_mapped(), 0);
  EXPECT_EQ(hot.finished->tiers().cold_rows_read(), 0);
}

TEST_F(GenerationTest, TheFakeDeviceGivesTheSameTokens) {
  StartNodes(1);
  const std::vector<std::string> flags = {
      "--hbm-ratio=0.1", "--cold=prefetch", kScarceT0,
      "--memory-nodes=" + absl::StrJoin(cluster_->Addresses(), ",")};
  std::vector<std::string> fake_flags = flags;
  fake_flags.push_back("--device=fake");
  auto fake = WorkerProcess::Start(fake_flags, /*faults=*/true);
  ASSERT_TRUE(fake.ok()) << fake.status();
  std::vector<std::string> cpu_flags = flags;
  cpu_flags.push_back("--device=cpu");
  StartWorker(cpu_flags);
  const GenerateRequest request = ForcedRequest(11, 20, kLongTokens);

  const Generated late = (*fake)->Generate(request);
  const Generated direct = worker_->Generate(request);

  ASSERT_TRUE(late.status.ok()) << late.status.error_message();
  ASSERT_TRUE(late.finished.has_value());
  EXPECT_GT(late.finished->tiers().cold_rows_fetched(), 0);
  EXPECT_EQ(late.tokens, direct.tokens);
  ExpectCleanEnd(**fake, 1);
}

TEST_F(GenerationTest, EightSequencesOverTwoNodesReadMappedRows) {
  StartNodes(2);
  StartWorker({"--hbm-ratio=0.1", "--granularity=16", "--stripe=128",
               "--spread", "--map-dir=" + cluster_->map_dir(),
               "--t0-bytes=16MiB"});
  WorkerProcess& full = StartFull();
  const auto request = [](size_t i) {
    return ForcedRequest(i, 10 + static_cast<int32_t>(i), kLongTokens);
  };
  std::vector<Generated> results(8);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < results.size(); ++i) {
    clients.emplace_back(
        [&, i] { results[i] = worker_->Generate(request(i)); });
  }
  for (std::thread& client : clients) client.join();

  int64_t mapped = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].status.ok()) << results[i].status.error_message();
    ASSERT_TRUE(results[i].finished.has_value())
        << results[i].error->message() << "\n"
        << worker_->Log();
    mapped += results[i].finished->tiers().cold_rows_mapped();
    EXPECT_EQ(full.Generate(request(i)).tokens, results[i].tokens);
  }
  EXPECT_GT(mapped, 0);
}

TEST_F(GenerationTest, TheReasonerAnswersAProgram) {
  Start(0, {});

  const HeldOutProgram program = FirstHeldOutProgram();
  const Generated result = worker_->Generate(TextRequest(program.prompt, 600));

  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  ASSERT_TRUE(result.finished.has_value());
  EXPECT_EQ(result.finished->reason(), worker::v1::FINISH_REASON_STOP);
  EXPECT_EQ(result.text, program.completion);
}

TEST_F(GenerationTest, AStopTextEndsTheOutputBeforeIt) {
  Start(0, {});
  const HeldOutProgram program = FirstHeldOutProgram();
  const std::string stop = program.completion.substr(7, 5);
  GenerateRequest request = TextRequest(program.prompt, 60);
  request.mutable_stopping()->add_stop_texts(stop);

  const Generated result = worker_->Generate(request);

  ASSERT_TRUE(result.finished.has_value());
  EXPECT_EQ(result.text,
            program.completion.substr(0, program.completion.find(stop)));
  EXPECT_EQ(result.finished->stop_text(), stop);
}

TEST_F(GenerationTest, BadFieldsAreRefusedByName) {
  Start(0, {});
  const auto refusal = [this](const GenerateRequest& request) {
    const Generated result = worker_->Generate(request);
    EXPECT_NE(result.status.error_code(), grpc::StatusCode::OK);
    return result.status.error_message();
  };
  GenerateRequest request = TextRequest("", 5);
  EXPECT_THAT(refusal(request), HasSubstr("prompt is empty"));
  request = TextRequest("a1;", 5);
  request.mutable_sampling()->set_temperature(-1.0f);
  EXPECT_THAT(refusal(request),
              AllOf(HasSubstr("temperature"), HasSubstr("-1")));
  request = TextRequest("a1;", 5);
  request.mutable_sampling()->set_top_p(std::nanf(""));
  EXPECT_THAT(refusal(request), HasSubstr("top_p"));
  request = TextRequest("a1;~", 5);
  EXPECT_THAT(refusal(request), AllOf(HasSubstr("~"), HasSubstr("byte 3")));
  request = TextRequest("a1;", 1 << 20);
  EXPECT_THAT(refusal(request), HasSubstr("positions"));
  request = TextRequest("a1;", 5);
  request.clear_text();
  request.mutable_token_ids()->add_ids(100000);
  EXPECT_THAT(refusal(request), HasSubstr("100000"));
  request = TextRequest("a1;", 5);
  request.mutable_tiers()->set_hbm_ratio(1.5f);
  EXPECT_THAT(refusal(request), HasSubstr("1.5"));
}

TEST_F(GenerationTest, ClosingTheStreamFreesTheSequence) {
  StartSlow({});
  {
    grpc::ClientContext context;
    SetDeadline(context, absl::Seconds(60));
    GenerateRequest request = TextRequest("a1;", 7000);
    request.mutable_stopping()->set_ignore_eos(true);
    const auto reader = worker_->generation().Generate(&context, request);
    worker::v1::GenerateResponse response;
    ASSERT_TRUE(reader->Read(&response));
    context.TryCancel();
    while (reader->Read(&response)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }

  ExpectEndedEarly(7000);
}

TEST_F(GenerationTest, AnExpiredDeadlineEndsTheRequest) {
  StartSlow({});
  GenerateRequest request = TextRequest("a1;", 7000);
  request.mutable_stopping()->set_ignore_eos(true);

  // On a busy machine the first token may come after a short deadline.
  Generated result;
  for (int seconds = 1; seconds <= 16 && result.tokens.empty(); seconds *= 2) {
    result = worker_->Generate(request, absl::Seconds(seconds));
    // Client and worker each look at the clock.
    if (result.finished.has_value()) {
      EXPECT_EQ(result.finished->reason(), worker::v1::FINISH_REASON_DEADLINE);
    } else {
      EXPECT_EQ(result.status.error_code(),
                grpc::StatusCode::DEADLINE_EXCEEDED);
    }
  }

  EXPECT_FALSE(result.tokens.empty());
  ExpectEndedEarly(7000);
}

TEST_F(GenerationTest, AFullQueueRefusesAndADuplicateIdToo) {
  StartSlow({"--max-sequences=1", "--max-queue=1"});
  const auto open = [this](grpc::ClientContext& context,
                           const std::string& id) {
    SetDeadline(context, absl::Seconds(60));
    GenerateRequest request = TextRequest("a1;", 7000);
    request.set_request_id(id);
    request.mutable_stopping()->set_ignore_eos(true);
    return worker_->generation().Generate(&context, request);
  };
  grpc::ClientContext running_context, waiting_context;
  const auto running = open(running_context, "running");
  worker::v1::GenerateResponse response;
  ASSERT_TRUE(running->Read(&response));

  GenerateRequest duplicate = TextRequest("a1;", 5);
  duplicate.set_request_id("running");
  EXPECT_EQ(worker_->Generate(duplicate).status.error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  const auto waiting = open(waiting_context, "waiting");
  worker::v1::GetLoadResponse load;
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (load.waiting() < 1) {
    ASSERT_LT(absl::Now(), end);
    grpc::ClientContext context;
    SetDeadline(context, absl::Seconds(10));
    ASSERT_TRUE(worker_->generation().GetLoad(&context, {}, &load).ok());
  }
  const Generated refused = worker_->Generate(TextRequest("a1;", 5));

  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("--max-queue"));
  running_context.TryCancel();
  waiting_context.TryCancel();
  running->Finish();
  waiting->Finish();
}

TEST_F(GenerationTest, MetricsCountWhatWasGenerated) {
  Start(1, {"--hbm-ratio=0.1", "--cold=prefetch"});
  ASSERT_TRUE(worker_->Generate(ForcedRequest(3, 10, 300)).status.ok());

  const std::string metrics = HttpGet(worker_->metrics_port(), "/metrics");

  EXPECT_THAT(metrics, HasSubstr("farkv_worker_generated_tokens_total 308"));
  EXPECT_THAT(metrics, HasSubstr("farkv_worker_first_token_seconds_count 1"));
  EXPECT_THAT(HttpGet(worker_->metrics_port(), "/readyz"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace farkv::testing
