// What farkvctl's command line takes, refuses and offers to complete.
#include "admin_cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "admin_cli/completion.h"

namespace farkv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() { Begin(); }

  void Begin() {
    v_ = Invocation();
    app_ = std::make_unique<CLI::App>("", "farkvctl");
    AddCommands(*app_, v_);
  }
  absl::Status Parse(const std::string& line) {
    Begin();
    try {
      app_->parse(line);
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(error.what());
    }
    return FinishInvocation(v_);
  }
  std::string Refusal(const std::string& line) {
    const absl::Status status = Parse(line);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line << ": " << status;
    return std::string(status.message());
  }

  Invocation v_;
  std::unique_ptr<CLI::App> app_;
};

TEST_F(CommandLineTest, FlagsOfTheAnswerMayStandBehindTheCommand) {
  ASSERT_TRUE(Parse("get pools -o wide --sort-by=-usedBytes --no-headers "
                    "--watch --watch-interval 500ms --watch-count 3")
                  .ok());

  EXPECT_EQ(v_.options.output.format, "wide");
  EXPECT_EQ(v_.options.output.sort_by, "-usedBytes");
  EXPECT_TRUE(v_.options.output.no_headers);
  EXPECT_TRUE(v_.options.watch.enabled);
  EXPECT_EQ(v_.options.watch.interval, absl::Milliseconds(500));
  EXPECT_EQ(v_.options.watch.count, 3);
}

TEST_F(CommandLineTest, AFormThatIsNotThereIsRefused) {
  EXPECT_THAT(Refusal("get nodes -o xml"),
              AllOf(HasSubstr("--output"), HasSubstr("xml")));
}

TEST_F(CommandLineTest, ColumnsAreThoseOfTheNoun) {
  EXPECT_THAT(Refusal("get nodes --sort-by liveRows"),
              AllOf(HasSubstr("--sort-by"), HasSubstr("liveRows"),
                    HasSubstr("id, address, state")));
  EXPECT_TRUE(Parse("get pools --sort-by liveRows").ok());
}

TEST_F(CommandLineTest, OnlyWhatPrintsRowsIsSortedOrRepeated) {
  EXPECT_THAT(Refusal("undrain 127.0.0.1:7402 --watch"), HasSubstr("--watch"));
  EXPECT_THAT(Refusal("version --sort-by version"), HasSubstr("--sort-by"));
  EXPECT_THAT(Refusal("get nodes --watch-interval 2"),
              HasSubstr("--watch-interval"));
  EXPECT_THAT(Refusal("get nodes --watch-count=-1"),
              HasSubstr("--watch-count"));
}

TEST_F(CommandLineTest, TopHasItsOwnIntervalAndCount) {
  ASSERT_TRUE(Parse("top --interval 500ms --count 3 --plain -o json "
                    "--sort-by=-storedBytesPerSecond")
                  .ok());

  EXPECT_EQ(v_.options.top.interval, absl::Milliseconds(500));
  EXPECT_EQ(v_.options.top.count, 3);
  EXPECT_TRUE(v_.options.top.plain);
}

TEST_F(CommandLineTest, WhatTopCannotDoIsRefused) {
  EXPECT_THAT(Refusal("top --watch"), HasSubstr("--interval"));
  EXPECT_THAT(Refusal("top -o name"), HasSubstr("--output"));
  EXPECT_THAT(Refusal("top --interval 2"), HasSubstr("--interval"));
  EXPECT_THAT(Refusal("top --count=-1"), HasSubstr("--count"));
  EXPECT_THAT(Refusal("top --sort-by nothing"), HasSubstr("tokensPerSecond"));
  EXPECT_THAT(Refusal("top --nodes none --workers none"),
              HasSubstr("nobody to ask"));
}

TEST_F(CommandLineTest, PagesAreChosenBySessionTierAndState) {
  ASSERT_TRUE(Parse("get pages --session abcdef01 --tier T1 --state reserved "
                    "--limit 5")
                  .ok());

  EXPECT_EQ(v_.session, "abcdef01");
  EXPECT_EQ(v_.pages.tier, "T1");
  EXPECT_EQ(v_.pages.state, "reserved");
  EXPECT_EQ(v_.pages.limit, 5);
  EXPECT_THAT(Refusal("get pages --tier T0"), HasSubstr("--tier"));
  EXPECT_THAT(Refusal("get pages --state free"), HasSubstr("--state"));
  EXPECT_THAT(Refusal("get pages --session xy"), HasSubstr("--session"));
  EXPECT_THAT(Refusal("describe pool"), HasSubstr("node"));
}

TEST_F(CommandLineTest, ADrainHasToBeMeant) {
  EXPECT_THAT(Refusal("drain node-0:7402"),
              AllOf(HasSubstr("node-0:7402"), HasSubstr("--yes")));
  EXPECT_THAT(Refusal("drain --yes"), HasSubstr("addresses"));
  EXPECT_THAT(Refusal("drain --yes node-0"), HasSubstr("node-0"));
  EXPECT_THAT(Refusal("undrain node-0:0"), HasSubstr("node-0:0"));
  ASSERT_TRUE(Parse("drain --yes node-0:7402 node-1:7402 --no-wait").ok());
  EXPECT_THAT(v_.drained, ElementsAre("node-0:7402", "node-1:7402"));
  EXPECT_TRUE(v_.no_wait);
}

TEST_F(CommandLineTest, NobodyIsAskedWhereNoneIsSaid) {
  ASSERT_TRUE(Parse("get pools --workers none").ok());

  EXPECT_THAT(v_.options.workers, ElementsAre());
  EXPECT_THAT(v_.options.nodes, ElementsAre("127.0.0.1:7402"));
}

TEST_F(CommandLineTest, KeysComeFromTheVariablesOfTheProgramsToo) {
  ASSERT_EQ(setenv("FARKV_TLS_CA", "/nonexistent-ca.pem", /*replace=*/1), 0);
  EXPECT_THAT(Refusal("get nodes"), HasSubstr("/nonexistent-ca.pem"));
  EXPECT_THAT(Refusal("get nodes --tls-ca /other.pem"),
              HasSubstr("/other.pem"));
  ASSERT_EQ(unsetenv("FARKV_TLS_CA"), 0);
  EXPECT_TRUE(Parse("get nodes").ok());
}

TEST_F(CommandLineTest, ASessionIsCheckedBeforeAnybodyIsAsked) {
  EXPECT_THAT(Refusal("verify --session xyz"),
              AllOf(HasSubstr("--session"), HasSubstr("xyz")));
  EXPECT_TRUE(Parse("verify --session 0a0b0c0d").ok());
  EXPECT_TRUE(Parse("get evictions --session 0a0b0c0d").ok());
  EXPECT_TRUE(Parse("replay evictions --session 0a0b0c0d").ok());
}

TEST_F(CommandLineTest, PreflightLooksForWhatIsGoingToRun) {
  ASSERT_TRUE(Parse("preflight --role node --t1-bytes 3GiB --t2-bytes 1GiB "
                    "--node-id n0 --map-dir /run/farkv")
                  .ok());
  EXPECT_EQ(v_.preflight.pool_bytes, uint64_t{4} << 30);
  EXPECT_THAT(
      v_.preflight.listen,
      ElementsAre("127.0.0.1:7401", "127.0.0.1:7402", "127.0.0.1:7403"));
  EXPECT_THAT(Refusal("preflight --t1-bytes 3"),
              AllOf(HasSubstr("--t1-bytes"), HasSubstr("3")));
  EXPECT_THAT(Refusal("preflight --listen 7401"),
              AllOf(HasSubstr("--listen"), HasSubstr("7401")));
  EXPECT_THAT(Refusal("preflight --map-dir run"),
              AllOf(HasSubstr("--map-dir"), HasSubstr("run")));
  EXPECT_THAT(Refusal("preflight --role boss"), HasSubstr("boss"));
}

TEST_F(CommandLineTest, AWorkersMachineNeedsNoPool) {
  ASSERT_TRUE(Parse("preflight --role worker --listen none").ok());

  EXPECT_EQ(v_.preflight.pool_bytes, 0);
  EXPECT_THAT(v_.preflight.listen, ElementsAre());
}

TEST_F(CommandLineTest, CompletionKnowsCommandsFlagsAndValues) {
  for (const char* shell : {"bash", "zsh"}) {
    const std::string script = CompletionScript(*app_, shell);
    EXPECT_THAT(script, HasSubstr("' get') commands='nodes workers pools"));
    EXPECT_THAT(script, HasSubstr("--output|-o) list='table wide json yaml "
                                  "name'"));
    EXPECT_THAT(script, HasSubstr("' drain') commands='' flags='"));
  }
  EXPECT_THAT(
      CompletionScript(*app_, "fish"),
      AllOf(HasSubstr("\"__farkvctl_at ' get'\" -a nodes -d 'Memory nodes'\n"),
            HasSubstr("-l output -s o -x -a "),
            HasSubstr("\"__farkvctl_at ' drain'\" -l yes -d ")));
}

}  // namespace
}  // namespace farkv
