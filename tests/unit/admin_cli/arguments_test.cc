#include "admin_cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const CommonArguments& typed) {
  CliOptions options;
  const absl::Status status = Finish(typed, options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

// Of a request that is good but for what `change` does to it.
std::string Refusal(
    const std::function<void(GenerateArguments&, GenerateOptions&)>& change) {
  GenerateArguments typed;
  GenerateOptions options;
  typed.prompt = "a1;";
  change(typed, options);
  const absl::Status status = Finish(typed, options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ArgumentsTest, AddressesAreReadAndDefaultsFilledIn) {
  CliOptions options;
  ASSERT_TRUE(Finish({{"a:1,b:2", "[::1]:3"}, {}, "500ms"}, options).ok());

  EXPECT_THAT(options.nodes, ElementsAre("a:1", "b:2", "[::1]:3"));
  EXPECT_THAT(options.workers, ElementsAre("127.0.0.1:7502"));
  EXPECT_EQ(options.timeout, absl::Milliseconds(500));
}

TEST(ArgumentsTest, WhatIsNoAddressIsRefusedNamingFlagAndValue) {
  for (const char* bad : {"host", "host:99999", "host:0", "a:1,,b:2", "a:1,",
                          "a:1,a:1", "http://a:1", "a b:1"}) {
    EXPECT_THAT(Refusal(CommonArguments{{bad}, {}, "60s"}),
                AllOf(HasSubstr("--nodes: '"), HasSubstr(bad)))
        << bad;
    EXPECT_THAT(Refusal(CommonArguments{{}, {bad}, "60s"}),
                AllOf(HasSubstr("--workers: '"), HasSubstr(bad)))
        << bad;
  }
  EXPECT_THAT(Refusal(CommonArguments{{""}, {}, "60s"}),
              HasSubstr("--nodes: is empty"));
}

TEST(ArgumentsTest, TimesOutOfRangeAndMissingFilesAreNamed) {
  for (const char* bad : {"5", "0s", "-1s", "inf", "1ns", "9999999h"}) {
    EXPECT_THAT(Refusal(CommonArguments{{}, {}, bad}),
                AllOf(HasSubstr("--timeout"), HasSubstr(bad)));
  }
  CliOptions options;
  options.tls.ca_file = "/nonexistent.pem";
  EXPECT_THAT(std::string(Finish(CommonArguments(), options).message()),
              AllOf(HasSubstr("--tls-ca"), HasSubstr("/nonexistent.pem")));
}

TEST(ArgumentsTest, ABiasIsATokenAndANumber) {
  GenerateArguments typed;
  GenerateOptions options;
  typed.prompt = "a1;";
  typed.logit_bias = {"7:1.5,0:-100", "9:2e1"};
  ASSERT_TRUE(Finish(typed, options).ok());
  EXPECT_THAT(options.logit_bias,
              ElementsAre(::testing::Pair(7, 1.5f), ::testing::Pair(0, -100.0f),
                          ::testing::Pair(9, 20.0f)));
  for (const char* bad :
       {"7", "7:", ":1", "-7:1", "x:1", "7:1:2", "7:1,", ""}) {
    EXPECT_THAT(Refusal([bad](auto& t, auto&) { t.logit_bias = {bad}; }),
                HasSubstr("--logit-bias: "))
        << bad;
  }
  EXPECT_THAT(Refusal([](auto& t, auto&) {
                t.logit_bias = {"7:1", "7:2"};
              }),
              HasSubstr("token 7 is given twice"));
}

// The messages of a file with `text`, or why there are none.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> MessagesOf(
    const std::string& text) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/messages_", getpid(), ".json");
  std::ofstream(path) << text;
  GenerateArguments typed;
  typed.messages_file = path;
  GenerateOptions options;
  const absl::Status status = Finish(typed, options);
  std::remove(path.c_str());
  if (!status.ok()) return status;
  return options.messages;
}

TEST(ArgumentsTest, AConversationIsAListOfRolesAndContents) {
  const auto messages = MessagesOf(
      R"([{"role": "user", "content": "a"}, {"content": "", "role": "b"}])");
  ASSERT_TRUE(messages.ok()) << messages.status();
  EXPECT_THAT(*messages, ElementsAre(::testing::Pair("user", "a"),
                                     ::testing::Pair("b", "")));
  for (const char* bad :
       {"[]", "{}", "x", R"(["a"])", R"([{"role": "user"}])",
        R"([{"role": "user", "content": 1}])", "[1,",
        R"([{"role": "user", "content": "a", "name": "n"}])"}) {
    EXPECT_THAT(std::string(MessagesOf(bad).status().message()),
                HasSubstr("--messages-file: "))
        << bad;
  }
  EXPECT_THAT(Refusal([](auto& t, auto&) { t.messages_file = "/etc/hosts"; }),
              HasSubstr("2 given"));
}

TEST(ArgumentsTest, ExactlyOnePromptIsNeeded) {
  EXPECT_THAT(Refusal([](auto& t, auto&) { t.prompt.reset(); }),
              HasSubstr("none given"));
  EXPECT_THAT(Refusal([](auto& t, auto&) { t.prompt_ids = "1,2"; }),
              AllOf(HasSubstr("--prompt-ids"), HasSubstr("2 given")));
  EXPECT_THAT(Refusal([](auto& t, auto&) { t.prompt_file = "/etc/hosts"; }),
              HasSubstr("--prompt-file"));
  EXPECT_THAT(Refusal([](auto& t, auto&) { t.prompt = ""; }),
              HasSubstr("--prompt: is empty"));
  EXPECT_THAT(
      Refusal([](auto& t, auto&) { t.prompt->resize(16 << 20, 'a'); }),
      AllOf(HasSubstr("--prompt: has 16777216 bytes"), HasSubstr("16711680")));
}

TEST(ArgumentsTest, PromptsMustBeUtf8) {
  EXPECT_THAT(Refusal([](auto& t, auto&) { t.prompt = "ab\xff"; }),
              AllOf(HasSubstr("--prompt: is not UTF-8 at byte 2"),
                    HasSubstr("'\\xff'")));
  EXPECT_THAT(Refusal([](auto&, auto& o) { o.stop_texts = {"\xc3"}; }),
              HasSubstr("--stop: is not UTF-8 at byte 0"));
  GenerateArguments typed;
  GenerateOptions options;
  typed.prompt = "gr\xc3\xbcn\n";
  EXPECT_TRUE(Finish(typed, options).ok());
}

TEST(ArgumentsTest, APromptFileMustBeAFileWithText) {
  const std::string path = ::testing::TempDir() + "/arguments_test_" +
                           std::to_string(getpid()) + ".txt";
  const auto read = [](const std::string& file, GenerateOptions& options) {
    GenerateArguments typed;
    typed.prompt_file = file;
    return Finish(typed, options);
  };
  GenerateOptions options;
  std::ofstream(path) << "a1;";
  ASSERT_TRUE(read(path, options).ok());
  EXPECT_EQ(options.prompt, "a1;");

  EXPECT_THAT(std::string(read("/", options).message()),
              HasSubstr("--prompt-file: '/' is a directory"));
  const absl::Status missing = read("/nonexistent", options);
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr("'/nonexistent'"), HasSubstr("No such file")));
  std::ofstream(path).flush();
  EXPECT_THAT(std::string(read(path, options).message()),
              AllOf(HasSubstr(path.substr(0, 20)), HasSubstr("is empty")));
}

TEST(ArgumentsTest, NumbersOutOfRangeAreNamed) {
  for (const char* bad :
       {"-1", "1.5", "x", "+1", " 1", "18446744073709551616"}) {
    EXPECT_THAT(Refusal([&](auto& t, auto&) { t.seed = bad; }),
                AllOf(HasSubstr("--seed: '"), HasSubstr(bad)));
  }
  for (const char* bad : {"-1", "1.5", "x", "1,,2", "1,", "2147483648"}) {
    EXPECT_THAT(Refusal([&](auto& t, auto&) {
                  t.prompt.reset();
                  t.prompt_ids = bad;
                }),
                HasSubstr("--prompt-ids: '"));
    EXPECT_THAT(Refusal([&](auto& t, auto&) { t.stop_ids = {bad}; }),
                HasSubstr("--stop-ids: '"));
    EXPECT_THAT(Refusal([&](auto& t, auto&) { t.forced_ids = {bad}; }),
                HasSubstr("--forced-ids: '"));
  }
  GenerateArguments typed;
  GenerateOptions options;
  typed.prompt_ids = "1, 2";
  typed.seed = "18446744073709551615";
  ASSERT_TRUE(Finish(typed, options).ok());
  EXPECT_THAT(options.prompt_ids, ElementsAre(1, 2));
  EXPECT_EQ(options.seed, ~uint64_t{0});
}

TEST(ArgumentsTest, TheWorkerIsAnAddress) {
  for (const char* bad : {"host", "host:99999", "host:0", ""}) {
    EXPECT_THAT(Refusal([&](auto& t, auto&) { t.worker = bad; }),
                AllOf(HasSubstr("--worker: '"), HasSubstr(bad)));
  }
}

TEST(ArgumentsTest, ARequestIdFitsOnALine) {
  EXPECT_THAT(Refusal([](auto&, auto& o) { o.request_id = "a\nb"; }),
              HasSubstr("--request-id: 'a\\nb' has a control character"));
  EXPECT_THAT(
      Refusal([](auto&, auto& o) { o.request_id = std::string(300, 'x'); }),
      HasSubstr("has 300 bytes, at most 256"));
}

TEST(ArgumentsTest, AChatTakesATextAndASystemMessageNeedsAChat) {
  GenerateArguments typed;
  GenerateOptions options;
  typed.prompt = "hello";
  typed.system = "be brief";
  options.chat = true;
  ASSERT_TRUE(Finish(typed, options).ok());
  EXPECT_EQ(options.system, "be brief");

  EXPECT_THAT(Refusal([](GenerateArguments& t, GenerateOptions&) {
                t.system = "be brief";
              }),
              HasSubstr("--system: goes with --chat"));
  EXPECT_THAT(Refusal([](GenerateArguments& t, GenerateOptions& o) {
                t.prompt.reset();
                t.prompt_ids = "1,2";
                o.chat = true;
              }),
              HasSubstr("--chat: takes a text"));
  EXPECT_THAT(Refusal([](GenerateArguments& t, GenerateOptions& o) {
                t.system = "\xff";
                o.chat = true;
              }),
              HasSubstr("--system: is not UTF-8"));
}

}  // namespace
}  // namespace farkv
