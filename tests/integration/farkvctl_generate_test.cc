// farkvctl generate against a real worker: what it prints, that each flag
// arrives, and its exit codes; and farkvctl version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/worker_process.h"

namespace farkv::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kPrompt[] = "a3;b4;c1;d2;|";

std::vector<std::string> Command(std::vector<std::string> words) {
  words.insert(words.begin(), BinDir() + "/farkvctl");
  return words;
}

class FarkvctlGenerateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto worker = WorkerProcess::Start({"--t0-bytes=1MiB"});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }
  void TearDown() override {
    if (worker_ != nullptr) ExpectCleanEnd(*worker_, 0);
  }

  ProgramResult Generate(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "generate");
    flags.push_back(absl::StrCat("--worker=127.0.0.1:", worker_->port()));
    return RunProgram(Command(std::move(flags)));
  }
  // Of a request for 40 tokens of the prompt above.
  nlohmann::json Answer(std::vector<std::string> flags) {
    flags.insert(flags.end(),
                 {absl::StrCat("--prompt=", kPrompt), "--max-new-tokens=40",
                  "--ignore-eos", "--timeout=60s", "-o", "json"});
    const ProgramResult result = Generate(std::move(flags));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    auto document = nlohmann::json::parse(result.output, nullptr, false);
    EXPECT_TRUE(document.is_object()) << result.output;
    return document;
  }
  nlohmann::json Tokens(std::vector<std::string> flags) {
    return Answer(std::move(flags))["tokenIds"];
  }

  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(FarkvctlGenerateTest, PrintsWhatTheWorkerAnswers) {
  const Generated expected = worker_->Generate(TextRequest(kPrompt, 40));
  const std::vector<std::string> flags = {absl::StrCat("--prompt=", kPrompt),
                                          "--max-new-tokens=40"};
  const ProgramResult plain = Generate(flags);
  const nlohmann::json document = Answer({"--request-id=mine"});

  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.output, expected.text + "\n");
  EXPECT_EQ(document["apiVersion"], "farkv/v1");
  EXPECT_EQ(document["requestId"], "mine");
  EXPECT_THAT(document["text"].get<std::string>(), StartsWith(expected.text));
  EXPECT_EQ(document["finishReason"], "length");
  EXPECT_EQ(document["usage"]["promptTokens"], 14);
  EXPECT_EQ(document["usage"]["completionTokens"], 40);
  EXPECT_EQ(document["tiers"]["t0Tokens"], 14 + 40 - 1);
}

TEST_F(FarkvctlGenerateTest, EachSamplingFlagArrives) {
  const auto greedy = Tokens({});
  const std::string hot = "--temperature=20";

  EXPECT_EQ(Answer({hot, "--seed=7"})["usage"]["seed"], 7);
  EXPECT_EQ(Tokens({hot, "--seed=7"}), Tokens({hot, "--seed=7"}));
  EXPECT_NE(Tokens({hot, "--seed=7"}), Tokens({hot, "--seed=8"}));
  EXPECT_NE(Tokens({hot, "--seed=7"}), greedy);
  EXPECT_EQ(Tokens({hot, "--top-k=1"}), greedy);
  EXPECT_EQ(Tokens({hot, "--top-p=0.000001"}), greedy);
  EXPECT_EQ(Tokens({hot, "--min-p=1"}), greedy);
  const auto warm = Tokens({hot, "--seed=7"});
  for (const char* flag :
       {"--min-p=0.5", "--repetition-penalty=1.8", "--frequency-penalty=2",
        "--presence-penalty=-2", "--logit-bias=3:30,4:-5"}) {
    EXPECT_NE(Tokens({hot, "--seed=7", flag}), warm) << flag;
  }
  EXPECT_EQ(Tokens({"--logit-bias=7:100"}), nlohmann::json(std::vector(40, 7)));
}

TEST_F(FarkvctlGenerateTest,
       SeveralOutputsAreListedAndPrintedUnderTheirNumber) {
  const std::vector<std::string> flags = {"--temperature=20", "--seed=7",
                                          "--n=3"};
  const auto document = Answer(flags);
  ASSERT_EQ(document["outputs"].size(), 3);
  for (int i = 0; i < 3; ++i) {
    const auto& output = document["outputs"][static_cast<size_t>(i)];
    const auto single =
        Answer({"--temperature=20", absl::StrCat("--seed=", 7 + i)});
    EXPECT_EQ(output["index"], i);
    EXPECT_EQ(output["tokenIds"], single["tokenIds"]);
    EXPECT_EQ(output["usage"], single["usage"]);
  }
  EXPECT_EQ(document["tokenIds"], document["outputs"][0]["tokenIds"]);
  std::vector<std::string> plain = flags;
  plain.insert(plain.end(), {absl::StrCat("--prompt=", kPrompt),
                             "--max-new-tokens=5", "--ignore-eos"});
  EXPECT_THAT(Generate(plain).output,
              ContainsRegex("^--- output 0\n(.|\n)*\n--- output 1\n(.|\n)*"
                            "\n--- output 2\n"));
}

TEST_F(FarkvctlGenerateTest, LogProbabilitiesAreListedAndPrinted) {
  const auto document =
      Answer({"--logprobs", "--prompt-logprobs", "--top-logprobs=2"});
  ASSERT_EQ(document["logprobs"].size(), 40);
  EXPECT_EQ(document["logprobs"][0]["tokenId"], document["tokenIds"][0]);
  EXPECT_EQ(document["logprobs"][0]["top"].size(), 2);
  EXPECT_LE(document["logprobs"][0]["logprob"], 0.0);
  ASSERT_EQ(document["promptLogprobs"].size(), 14);
  EXPECT_TRUE(document["promptLogprobs"][0].is_null());
  EXPECT_EQ(document["promptLogprobs"][1]["top"].size(), 2);
  EXPECT_FALSE(Answer({}).contains("logprobs"));
  const ProgramResult plain = Generate(
      {"--prompt=a1", "--max-new-tokens=2", "--logprobs", "--prompt-logprobs"});
  EXPECT_THAT(plain.output, ContainsRegex("\nprompt -\nprompt [0-9]+ -?[0-9]"));
  EXPECT_THAT(plain.output, ContainsRegex("\noutput [0-9]+ -?[0-9.]+\n"));
}

TEST_F(FarkvctlGenerateTest, EachStoppingFlagArrives) {
  const auto all = Tokens({});
  const int stop = all[7];
  const auto by_token = Answer({absl::StrCat("--stop-ids=", stop)});
  const std::string text = Answer({})["text"];
  const std::string end = text.substr(9, 3);
  const auto by_text = Answer({"--stop=" + end});
  const auto forced = Tokens({"--forced-ids=5,6,7"});
  const auto included = Answer({"--stop=" + end, "--include-stop"});
  const auto later =
      Answer({absl::StrCat("--stop-ids=", stop), "--min-new-tokens=20"});

  EXPECT_EQ(by_token["finishReason"], "stop");
  EXPECT_EQ(by_token["tokenIds"].back(), stop);
  EXPECT_LT(by_token["tokenIds"].size(), 9);
  EXPECT_EQ(by_text["finishReason"], "stop");
  EXPECT_EQ(by_text["text"], text.substr(0, text.find(end)));
  EXPECT_EQ(included["text"], text.substr(0, text.find(end)) +
                                  by_text["stopText"].get<std::string>());
  EXPECT_GE(later["tokenIds"].size(), 20);
  EXPECT_EQ(nlohmann::json(std::vector<int>{5, 6, 7}),
            nlohmann::json({forced[0], forced[1], forced[2]}));
}

// The worker's words reach the user, and the script that runs it.
TEST_F(FarkvctlGenerateTest, ARefusedRequestEndsItWithOne) {
  const ProgramResult unknown = Generate({"--prompt=a~b"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.output,
              AllOf(StartsWith("error: "), HasSubstr("byte 1")));
  const ProgramResult id = Generate({"--prompt-ids=100000"});
  EXPECT_EQ(id.exit_code, 1);
  EXPECT_THAT(id.output, HasSubstr("100000"));
  const ProgramResult range = Generate({"--prompt=a", "--temperature=-1"});
  EXPECT_EQ(range.exit_code, 1);
  EXPECT_THAT(range.output, AllOf(HasSubstr("temperature"), HasSubstr("-1")));
  const ProgramResult large = Generate({"--prompt=a", "--max-new-tokens=4000"});
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_THAT(large.output, HasSubstr("--t0-bytes"));
}

TEST_F(FarkvctlGenerateTest, ARequestThatRunsOutOfTimeEndsItWithOne) {
  worker_->process().Signal(SIGSTOP);
  const ProgramResult late = Generate({"--prompt=a", "--timeout=200ms"});
  worker_->process().Signal(SIGCONT);

  EXPECT_EQ(late.exit_code, 1);
  EXPECT_THAT(late.output, HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(FarkvctlGenerateTest, ACancelledRequestEndsItWithOne) {
  worker_ = nullptr;
  auto worker =
      WorkerProcess::Start({"--t0-bytes=256MiB", "--drain-grace=1ms"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  worker_ = *std::move(worker);
  auto call = std::async(std::launch::async, [this] {
    return Generate({"--prompt=a", "--ignore-eos", "--request-id=cut",
                     "--max-new-tokens=7000"});
  });
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (ReadMetrics(
             worker_->metrics_port())["farkv_worker_running_sequences"] < 1) {
    ASSERT_LT(absl::Now(), end);
  }
  worker_->process().Signal(SIGTERM);

  const ProgramResult cut = call.get();
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.output, HasSubstr("was cancelled after"));
  EXPECT_EQ(worker_->process().Wait(absl::Seconds(60)).value_or(-1), 0);
  worker_ = nullptr;
}

TEST(FarkvctlNoWorkerTest, NobodyAtTheAddressEndsItWithFour) {
  const ProgramResult nobody =
      RunProgram(Command({"generate", "--prompt=a", "--worker=127.0.0.1:1"}));

  EXPECT_EQ(nobody.exit_code, 4);
  EXPECT_THAT(nobody.output, HasSubstr("127.0.0.1:1"));
}

TEST(FarkvctlVersionTest, EveryFormSaysTheSameVersion) {
  const ProgramResult table = RunProgram(Command({"version"}));
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(table.output, ContainsRegex("PROGRAM +VERSION\nfarkvctl +"));
  const ProgramResult json = RunProgram(Command({"version", "-o", "json"}));
  EXPECT_EQ(json.exit_code, 0);
  const auto document = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_TRUE(document.is_object()) << json.output;
  EXPECT_EQ(document["kind"], "Version");
  const std::string version = document["items"][0]["version"];
  EXPECT_THAT(version, ContainsRegex("[0-9]+\\.[0-9]+"));
  EXPECT_THAT(table.output, HasSubstr(version));
  for (const char* program :
       {"farkvctl", "farkv-worker", "farkv-memory-node"}) {
    const ProgramResult flag =
        RunProgram({absl::StrCat(BinDir(), "/", program), "--version"});
    EXPECT_EQ(flag.exit_code, 0);
    EXPECT_THAT(flag.output, HasSubstr(version)) << program;
  }
}

}  // namespace
}  // namespace farkv::testing
