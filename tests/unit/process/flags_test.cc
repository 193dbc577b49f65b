#include "common/process/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "common/process/config_text.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    flags_.AddBytes("t1-bytes", &bytes_, "size");
    flags_.AddDuration("lease", &lease_,
                       {absl::Seconds(1), absl::Hours(24), "of the test"},
                       "lease");
    flags_.AddRatio("high-watermark", &ratio_, "ratio");
    flags_.AddAddress("listen", &listen_, "address");
    flags_.AddChoice("log-format", &format_, {"text", "json"}, "format");
    flags_.AddPeers("memory-nodes", &nodes_, "nodes");
    flags_.AddSwitch("spread", &spread_, "switch");
    flags_.AddInteger("threads", &threads_, 1, 64, "threads");
  }

  std::optional<int> Parse(const std::vector<std::string>& arguments) {
    return flags_.Parse(arguments, [this](const std::string& name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
  }

  // Parses what must be refused and returns what stderr said.
  std::string Refusal(const std::vector<std::string>& arguments) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Parse(arguments), Flags::kUsageError);
    return ::testing::internal::GetCapturedStderr();
  }

  std::string WriteConfig(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/flags_test_" +
                             std::to_string(getpid()) + ".toml";
    std::ofstream(path) << text;
    return path;
  }

  uint64_t bytes_ = 1 << 20;
  absl::Duration lease_ = absl::Seconds(10);
  int32_t ratio_ = 9500;
  std::string listen_ = "127.0.0.1:7401";
  std::string format_ = "text";
  std::vector<std::string> nodes_;
  bool spread_ = false;
  int64_t threads_ = 2;
  std::map<std::string, std::string> environment_;
  Flags flags_{{"farkv-test", "Tests flags.", "1.2.3"}};
};

TEST_F(FlagsTest, ValuesOfEveryKindAreRead) {
  EXPECT_EQ(Parse({"--t1-bytes", "64MiB", "--lease=1m30s", "--high-watermark",
                   "0.5", "--listen", "[::1]:0", "--log-format", "json",
                   "--memory-nodes", "a:1, b:2", "--spread", "--threads", "8"}),
            std::nullopt);

  EXPECT_EQ(bytes_, 64u << 20);
  EXPECT_EQ(lease_, absl::Seconds(90));
  EXPECT_EQ(ratio_, 5000);
  EXPECT_EQ(listen_, "[::1]:0");
  EXPECT_EQ(format_, "json");
  EXPECT_THAT(nodes_, ::testing::ElementsAre("a:1", "b:2"));
  EXPECT_TRUE(spread_);
  EXPECT_EQ(threads_, 8);
}

TEST_F(FlagsTest, AFlagWinsOverTheEnvironmentAndThatOverTheFile) {
  const std::string file = WriteConfig(
      "threads = 3\nt1-bytes = \"3MiB\"\nlease = \"3s\"\nspread = true\n");
  environment_["FARKV_T1_BYTES"] = "2MiB";
  environment_["FARKV_THREADS"] = "4";

  EXPECT_EQ(Parse({"--config", file, "--threads", "5"}), std::nullopt);

  EXPECT_EQ(threads_, 5);
  EXPECT_EQ(bytes_, 2u << 20);
  EXPECT_EQ(lease_, absl::Seconds(3));
  EXPECT_TRUE(spread_);
  EXPECT_EQ(listen_, "127.0.0.1:7401");
}

TEST_F(FlagsTest, TheFileMayBeNamedByTheEnvironment) {
  environment_["FARKV_CONFIG"] = WriteConfig("threads = 7\n");

  EXPECT_EQ(Parse({}), std::nullopt);

  EXPECT_EQ(threads_, 7);
}

TEST_F(FlagsTest, AnUnknownKeyOfTheFileIsAnErrorNamingIt) {
  const std::string file = WriteConfig("treads = 3\n");

  EXPECT_THAT(Refusal({"--config", file}), HasSubstr("treads"));
}

// What CLI11 would skip, or take for `word = true`.
TEST_F(FlagsTest, ALineOfTheFileThatIsNoKeyAndValueIsAnErrorNamingIt) {
  for (const std::string word : {"x", "spread", "no", "two words", "= 3"}) {
    const std::string file =
        WriteConfig("# all threads\nthreads = 3\n\n" + word + "  # why\n");

    EXPECT_THAT(Refusal({"--config", file}),
                HasSubstr("--config " + file + ", line 4: '" + word +
                          "' is not of the form key = value"));
  }
  const std::string section = WriteConfig("[worker]\nthreads = 3\n");
  EXPECT_THAT(Refusal({"--config", section}), HasSubstr("line 1: '[worker]'"));
}

TEST_F(FlagsTest, AKeyThatComesTwiceInTheFileIsAnErrorNamingBothLines) {
  for (const std::string again :
       {"threads = 3", "\"threads\"=4", "threads=9"}) {
    for (const std::string between : {"", "spread = true\n"}) {
      const std::string file =
          WriteConfig("\nthreads = 3\n" + between + again + "\n");
      const std::string line = between.empty() ? "3" : "4";

      EXPECT_THAT(Refusal({"--config", file}),
                  HasSubstr("--config " + file + ", line " + line +
                            ": key 'threads' comes twice, first in line 2"));
      // Even where a flag wins over both.
      EXPECT_THAT(Refusal({"--config", file, "--threads=5"}),
                  HasSubstr("comes twice"));
    }
  }
}

TEST_F(FlagsTest, AListOfTheFileMayTakeSeveralLines) {
  const std::string file = WriteConfig(
      "memory-nodes = \"a:1,b:2\" # both\n; a comment\n  threads = 3\r\n");

  EXPECT_EQ(Parse({"--config", file}), std::nullopt);

  EXPECT_THAT(nodes_, ::testing::ElementsAre("a:1", "b:2"));
  EXPECT_EQ(threads_, 3);
  EXPECT_TRUE(CheckConfigText("a = [\"b\",\n  \"c\"\n]\nd = 1\n").ok());
  EXPECT_FALSE(CheckConfigText("a = [\"b\",\n  \"c\"\n]\na = 1\n").ok());
}

TEST_F(FlagsTest, AMissingFileIsAnErrorNamingIt) {
  EXPECT_THAT(Refusal({"--config", "/nowhere.toml"}),
              HasSubstr("/nowhere.toml"));
}

TEST_F(FlagsTest, AnUnknownFlagIsAnErrorNamingIt) {
  EXPECT_THAT(Refusal({"--treads", "3"}), HasSubstr("--treads"));
}

TEST_F(FlagsTest, ABareNumberIsRefusedWhereAUnitIsNeeded) {
  EXPECT_THAT(Refusal({"--t1-bytes", "64"}), HasSubstr("--t1-bytes"));
}

TEST_F(FlagsTest, ADurationOutsideItsBoundsIsRefusedWithTheReason) {
  EXPECT_THAT(Refusal({"--lease=1ns"}),
              HasSubstr("--lease: 1ns is outside 1s to 24h: of the test"));
  EXPECT_THAT(Refusal({"--lease=9999999h"}), HasSubstr("9999999h"));
}

TEST_F(FlagsTest, ANumberTooLargeFor64BitsIsOutsideLikeAnyOther) {
  EXPECT_THAT(Refusal({"--threads=99999999999999999999"}),
              HasSubstr("99999999999999999999 is outside 1 to 64"));
  EXPECT_THAT(Refusal({"--threads=-99999999999999999999"}),
              HasSubstr("-99999999999999999999 is outside 1 to 64"));
  EXPECT_THAT(Refusal({"--threads=3.5"}), HasSubstr("'3.5' is not a whole"));
}

TEST_F(FlagsTest, AListRefusesEmptyAndDoubleElements) {
  EXPECT_THAT(Refusal({"--memory-nodes=,"}), HasSubstr("',' has an empty"));
  EXPECT_THAT(Refusal({"--memory-nodes=a:1,"}),
              HasSubstr("'a:1,' has an empty"));
  EXPECT_THAT(Refusal({"--memory-nodes=a:1,b:2, a:1"}),
              HasSubstr("names 'a:1' twice"));
  EXPECT_THAT(Refusal({"--memory-nodes=a:0"}), HasSubstr("port 0"));
  EXPECT_EQ(Parse({"--memory-nodes="}), std::nullopt);
  EXPECT_TRUE(nodes_.empty());
}

TEST_F(FlagsTest, WhatCannotBeShownIsRefusedEscaped) {
  environment_["FARKV_LOG_FORMAT"] = "te\nxt";
  EXPECT_THAT(Refusal({}), HasSubstr("--log-format (from FARKV_LOG_FORMAT): "
                                     "'te\\nxt' has a control character"));
  environment_.clear();
  EXPECT_THAT(Refusal({"--log-format=\xff"}), HasSubstr("is not UTF-8"));
}

TEST_F(FlagsTest, AnErrorSaysThatTheValueCameFromTheEnvironment) {
  environment_["FARKV_THREADS"] = "65";

  EXPECT_THAT(Refusal({}), HasSubstr("--threads (from FARKV_THREADS): 65"));
}

TEST_F(FlagsTest, AChoiceOutsideTheListIsRefusedNamingTheList) {
  EXPECT_THAT(Refusal({"--log-format", "xml"}),
              HasSubstr("'xml' is not one of text|json"));
}

TEST_F(FlagsTest, EffectiveValuesAreTextsThatTheFlagsTake) {
  EXPECT_EQ(Parse({"--t1-bytes", "1GiB", "--spread"}), std::nullopt);

  const std::map<std::string, std::string> values = flags_.Effective();

  EXPECT_EQ(values.at("t1-bytes"), "1GiB");
  EXPECT_EQ(values.at("lease"), "10s");
  EXPECT_EQ(values.at("high-watermark"), "0.95");
  EXPECT_EQ(values.at("spread"), "true");
  std::vector<std::string> again;
  for (const auto& [name, value] : values) {
    again.push_back("--" + name + "=" + value);
  }
  EXPECT_EQ(Parse(again), std::nullopt);
  EXPECT_EQ(flags_.Effective(), values);
}

TEST_F(FlagsTest, HelpAndVersionEndWithSuccess) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--help"}), 0);
  const std::string help = ::testing::internal::GetCapturedStdout();
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"--version"}), 0);
  const std::string version = ::testing::internal::GetCapturedStdout();

  EXPECT_THAT(help, HasSubstr("--t1-bytes"));
  EXPECT_THAT(help, HasSubstr("1MiB"));
  EXPECT_EQ(version, "farkv-test 1.2.3\n");
}

}  // namespace
}  // namespace farkv
