// The Generate API as its clients see it: penalties, log probabilities, several
// outputs, names and aborts. Each field must reach the engine under its own
// name, and what is out of range must be named with its range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using worker::v1::Delta;
using worker::v1::Finished;
using worker::v1::GenerateRequest;
using worker::v1::GenerateResponse;
using worker::v1::TokenLogprobs;

constexpr int32_t kTokens = 40;
constexpr char kPrompt[] = "a3;b4;c1;d2;|";
constexpr int32_t kPromptTokens = 14;

GenerateRequest Request(float temperature) {
  GenerateRequest request = TextRequest(kPrompt, kTokens);
  request.mutable_stopping()->set_ignore_eos(true);
  request.mutable_sampling()->set_temperature(temperature);
  request.mutable_sampling()->set_seed(5);
  return request;
}

struct OutputRead {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;
  std::vector<Finished> finished;
};

struct StreamRead {
  std::map<int32_t, OutputRead> outputs;
  std::string request_id;
  grpc::Status status;
};

// One worker without nodes; each test leaves it with nothing to do.
class GenerateApiTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto worker = WorkerProcess::Start({"--max-sequences=4"});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  static void TearDownTestSuite() {
    if (worker_ != nullptr) ExpectCleanEnd(*worker_, 0);
    worker_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(worker_, nullptr); }
  void TearDown() override {
    if (worker_ == nullptr) return;
    ExpectSettled([] { return DebtsOfWorker(worker_->metrics_port()); },
                  &worker_->process());
  }

  // `on_response` may be empty.
  static StreamRead Read(const GenerateRequest& request,
                         const std::function<void()>& on_response = {}) {
    grpc::ClientContext context;
    SetDeadline(context, absl::Minutes(3));
    const auto reader = worker_->generation().Generate(&context, request);
    StreamRead read;
    for (GenerateResponse response; reader->Read(&response);) {
      read.request_id = response.request_id();
      if (on_response) on_response();
      if (response.has_finished()) {
        const int32_t index = response.finished().output_index();
        read.outputs[index].finished.push_back(response.finished());
      }
      if (!response.has_delta()) continue;
      const Delta& delta = response.delta();
      OutputRead& output = read.outputs[delta.output_index()];
      EXPECT_THAT(output.finished, SizeIs(0)) << "a delta behind the end";
      output.text += delta.text();
      output.tokens.insert(output.tokens.end(), delta.token_ids().begin(),
                           delta.token_ids().end());
      output.logprobs.insert(output.logprobs.end(), delta.logprobs().begin(),
                             delta.logprobs().end());
      output.prompt_logprobs.insert(output.prompt_logprobs.end(),
                                    delta.prompt_logprobs().begin(),
                                    delta.prompt_logprobs().end());
    }
    read.status = reader->Finish();
    return read;
  }
  // Of a request with one output.
  static OutputRead Run(const GenerateRequest& request) {
    StreamRead read = Read(request);
    EXPECT_TRUE(read.status.ok()) << read.status.error_message();
    EXPECT_THAT(read.outputs, SizeIs(1));
    EXPECT_THAT(read.outputs[0].finished, SizeIs(1));
    return read.outputs[0];
  }
  static std::string Refusal(const GenerateRequest& request) {
    const StreamRead read = Read(request);
    EXPECT_EQ(read.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(read.outputs, SizeIs(0));
    return read.status.error_message();
  }
  inline static std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(GenerateApiTest, EachSamplingFieldChangesTheTokensInItsOwnWay) {
  std::set<std::vector<int32_t>> outputs;
  const auto add = [&outputs](auto change) {
    GenerateRequest request = Request(20);
    change(*request.mutable_sampling());
    outputs.insert(Run(request).tokens);
  };
  add([](auto&) {});
  add([](auto& o) { o.set_min_p(0.5f); });
  add([](auto& o) { o.set_repetition_penalty(1.8f); });
  add([](auto& o) { o.set_frequency_penalty(2); });
  add([](auto& o) { o.set_presence_penalty(-2); });
  add([](auto& o) { (*o.mutable_logit_bias())[3] = 30; });
  EXPECT_THAT(outputs, SizeIs(6));
}

TEST_F(GenerateApiTest, ABiasForcesATokenOrKeepsItOut) {
  GenerateRequest request = Request(0);
  const std::vector<int32_t> plain = Run(request).tokens;
  auto& bias = *request.mutable_sampling()->mutable_logit_bias();
  bias[plain[0]] = -100;
  EXPECT_THAT(Run(request).tokens, Not(Contains(plain[0])));
  bias.clear();
  bias[7] = 100;
  EXPECT_THAT(Run(request).tokens, AllOf(SizeIs(kTokens), Each(7)));
}

TEST_F(GenerateApiTest, LogProbabilitiesComeWithTheTokensAndThePromptBefore) {
  GenerateRequest request = Request(20);
  const std::vector<int32_t> plain = Run(request).tokens;
  request.set_logprobs(true);
  request.set_prompt_logprobs(true);
  request.set_top_logprobs(3);

  const OutputRead read = Run(request);

  EXPECT_EQ(read.tokens, plain);
  ASSERT_THAT(read.logprobs, SizeIs(kTokens));
  for (size_t i = 0; i < read.tokens.size(); ++i) {
    const TokenLogprobs& entry = read.logprobs[i];
    EXPECT_EQ(entry.chosen().token_id(), read.tokens[i]);
    ASSERT_EQ(entry.top_size(), 3);
    EXPECT_LE(entry.chosen().logprob(), entry.top(0).logprob());
    EXPECT_GE(entry.top(1).logprob(), entry.top(2).logprob());
    EXPECT_LE(std::exp(entry.top(0).logprob()) +
                  std::exp(entry.top(1).logprob()) +
                  std::exp(entry.top(2).logprob()),
              1.0001);
  }
  ASSERT_THAT(read.prompt_logprobs, SizeIs(kPromptTokens));
  EXPECT_FALSE(read.prompt_logprobs[0].has_chosen());
  EXPECT_EQ(read.prompt_logprobs[1].top_size(), 3);
}

TEST_F(GenerateApiTest, SeveralOutputsComeAsRequestsOfTheirOwnWould) {
  GenerateRequest request = Request(20);
  request.set_logprobs(true);
  request.mutable_sampling()->set_n(3);
  request.set_prompt_logprobs(true);

  StreamRead all = Read(request);

  ASSERT_TRUE(all.status.ok()) << all.status.error_message();
  ASSERT_THAT(all.outputs, SizeIs(3));
  request.mutable_sampling()->set_n(1);
  for (int32_t i = 0; i < 3; ++i) {
    const OutputRead& output = all.outputs[i];
    request.mutable_sampling()->set_seed(5 + static_cast<uint64_t>(i));
    const OutputRead single = Run(request);
    EXPECT_EQ(output.tokens, single.tokens) << i;
    EXPECT_EQ(output.text, single.text);
    EXPECT_THAT(output.logprobs, SizeIs(kTokens));
    EXPECT_THAT(output.prompt_logprobs, SizeIs(i == 0 ? kPromptTokens : 0));
    ASSERT_THAT(output.finished, SizeIs(1));
    const auto& usage = output.finished[0].usage();
    EXPECT_EQ(usage.prompt_tokens(), kPromptTokens);
    EXPECT_EQ(usage.completion_tokens(), kTokens);
    EXPECT_EQ(usage.seed(), 5u + static_cast<uint64_t>(i));
    EXPECT_GT(output.finished[0].tiers().t0_tokens(), 0);
  }
}

TEST_F(GenerateApiTest, ANameIsMadeWhereThereIsNoneAndTakenOnlyOnce) {
  EXPECT_THAT(Read(Request(0)).request_id, Not(::testing::IsEmpty()));
  GenerateRequest request = Request(20);
  request.set_request_id("mine");
  request.mutable_sampling()->set_n(2);
  request.mutable_stopping()->set_max_new_tokens(5000);
  bool asked = false;
  const StreamRead read = Read(request, [&] {
    if (std::exchange(asked, true)) return;
    EXPECT_EQ(Read(request).status.error_code(),
              grpc::StatusCode::ALREADY_EXISTS);
    worker::v1::AbortRequest abort;
    abort.set_request_id("mine");
    worker::v1::AbortResponse found;
    grpc::ClientContext context;
    SetDeadline(context, absl::Seconds(30));
    EXPECT_TRUE(worker_->generation().Abort(&context, abort, &found).ok());
    EXPECT_TRUE(found.found());
  });

  EXPECT_TRUE(asked);
  EXPECT_EQ(read.request_id, "mine");
  ASSERT_THAT(read.outputs, SizeIs(2));
  for (const auto& [index, output] : read.outputs) {
    ASSERT_THAT(output.finished, SizeIs(1));
    EXPECT_EQ(output.finished[0].reason(), worker::v1::FINISH_REASON_CANCELLED);
  }
}

TEST_F(GenerateApiTest, WhatIsOutOfRangeIsNamedWithItsRange) {
  using S = worker::v1::SamplingOptions;
  const auto sampling = [](const std::function<void(S&)>& change) {
    GenerateRequest request = Request(20);
    change(*request.mutable_sampling());
    return Refusal(request);
  };
  EXPECT_THAT(sampling([](S& o) { o.set_min_p(1.5f); }),
              HasSubstr("sampling.min_p is 1.5, must lie in [0, 1]"));
  EXPECT_THAT(sampling([](S& o) { o.set_repetition_penalty(0); }),
              HasSubstr("sampling.repetition_penalty is 0, must lie in [0.01"));
  EXPECT_THAT(sampling([](S& o) { o.set_frequency_penalty(-3); }),
              HasSubstr("sampling.frequency_penalty is -3, must lie in [-2"));
  EXPECT_THAT(sampling([](S& o) { o.set_presence_penalty(3); }),
              HasSubstr("sampling.presence_penalty is 3, must lie in [-2, 2]"));
  EXPECT_THAT(sampling([](S& o) { (*o.mutable_logit_bias())[3] = 200; }),
              HasSubstr("sampling.logit_bias[3] is 200, must lie in [-100"));
  EXPECT_THAT(
      sampling([](S& o) { (*o.mutable_logit_bias())[99999] = 1; }),
      HasSubstr("a token of sampling.logit_bias is 99999, must lie in [0, "));
  EXPECT_THAT(sampling([](S& o) { o.set_n(0); }),
              HasSubstr("sampling.n is 0, must lie in [1, 16]"));
  EXPECT_THAT(sampling([](S& o) { o.set_n(5); }),
              HasSubstr("sampling.n is 5, must lie in [1, 4]"));
  GenerateRequest request = Request(0);
  request.mutable_sampling()->set_n(2);
  EXPECT_THAT(Refusal(request), HasSubstr("sampling.n is 2, must be 1 where"));
  request = Request(0);
  request.set_top_logprobs(3);
  EXPECT_THAT(Refusal(request), HasSubstr("top_logprobs is 3, must be 0"));
  request.set_logprobs(true);
  request.set_top_logprobs(21);
  EXPECT_THAT(Refusal(request),
              HasSubstr("top_logprobs is 21, must lie in [0, 20]"));
}

TEST_F(GenerateApiTest, WhatIsNotServedIsRefusedByName) {
  GenerateRequest request = Request(0);
  request.set_priority(1);
  const StreamRead read = Read(request);
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(read.status.error_message(), HasSubstr("priority is set"));
}

// Its tokenizer is one of characters, without marks of thoughts.
TEST_F(GenerateApiTest, TheModelAndTheLoadAreTold) {
  grpc::ClientContext model_context, load_context;
  SetDeadline(model_context, absl::Seconds(30));
  SetDeadline(load_context, absl::Seconds(30));
  worker::v1::GetModelResponse model;
  worker::v1::GetLoadResponse load;
  auto& stub = worker_->generation();
  ASSERT_TRUE(stub.GetModel(&model_context, {}, &model).ok());
  ASSERT_TRUE(stub.GetLoad(&load_context, {}, &load).ok());

  EXPECT_EQ(model.name(), "reasoner");
  EXPECT_GT(model.num_parameters(), 500'000);
  EXPECT_FALSE(model.has_reasoning_start_token_id());
  EXPECT_EQ(load.max_sequences(), 4);
  EXPECT_EQ(load.running(), 0);
  EXPECT_GT(load.t0_bytes(), 0);
  EXPECT_FALSE(load.draining());
}

TEST_F(GenerateApiTest, TheExampleInPythonRuns) {
  const std::string python = "/usr/bin/python3";
  if (RunProgram({python, "-c", "import grpc, google.protobuf"}).exit_code) {
    GTEST_SKIP() << "python3-grpcio or python3-protobuf is not installed";
  }
  const TemporaryFolder stubs;
  const ProgramResult made =
      RunProgram({SourceDir() + "/scripts/python_stubs.sh", stubs.path()});
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const auto run = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {
        "/usr/bin/env", "PYTHONPATH=" + stubs.path(), python,
        SourceDir() + "/docs/examples/generate.py",
        absl::StrCat("--worker=127.0.0.1:", worker_->port())};
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words);
  };

  const ProgramResult good = run({absl::StrCat("--prompt=", kPrompt),
                                  "--temperature=1", "--n=2", "--seed=3"});
  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_THAT(good.output, AllOf(HasSubstr("--- output 0: "),
                                 HasSubstr("seed 4"), HasSubstr("perplexity")));
  const ProgramResult bad = run({"--prompt=a", "--temperature=-1"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.output, HasSubstr("sampling.temperature is -1"));
}

}  // namespace
}  // namespace farkv::testing
