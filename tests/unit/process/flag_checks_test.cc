#include "common/process/flag_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farkv {
namespace {

using ::testing::HasSubstr;

std::string Why(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(FlagChecksTest, NamesAreWhatFilesAndHostsMayBeCalled) {
  for (const char* good : {"node-0", "n", "Node_1.example", "7"}) {
    EXPECT_TRUE(CheckName(good).ok()) << good;
  }
  EXPECT_TRUE(CheckName(std::string(kMaxNameBytes, 'x')).ok());
}

TEST(FlagChecksTest, OtherNamesAreRefusedSayingWhy) {
  EXPECT_THAT(Why(CheckName("")), HasSubstr("is empty"));
  EXPECT_THAT(Why(CheckName("a/b")), HasSubstr("'a/b' has '/'"));
  EXPECT_THAT(Why(CheckName("a b")), HasSubstr("'a b' has ' '"));
  EXPECT_THAT(Why(CheckName("a\nb")), HasSubstr("'a\\nb' has '\\n'"));
  EXPECT_THAT(Why(CheckName("..")), HasSubstr("begin with a letter"));
  EXPECT_THAT(Why(CheckName(std::string(300, 'x'))),
              HasSubstr("has 300 characters, at most 100"));
}

TEST(FlagChecksTest, PortRangesAreFirstToLast) {
  const auto range = ParsePortRange("9000-9100");
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(range->first, 9000);
  EXPECT_EQ(range->last, 9100);
  EXPECT_TRUE(ParsePortRange("65535-65535").ok());
}

TEST(FlagChecksTest, OtherPortRangesAreRefusedWithTheValue) {
  for (const char* bad :
       {"", "0", "9000", "9000-", "-9100", "0-9100", "9000-65536", "9100-9000",
        "a-b", "9000-9100-9200", "+9000-9100", "9000 - 9100", "9000-9100x"}) {
    EXPECT_THAT(Why(ParsePortRange(bad).status()), HasSubstr(bad)) << bad;
  }
}

TEST(FlagChecksTest, InterfacesMustBeOfThisMachine) {
  EXPECT_TRUE(CheckInterfaces("lo").ok());
  EXPECT_TRUE(CheckInterfaces("all").ok());
  const std::string why = Why(CheckInterfaces("lo,no-such-if"));
  EXPECT_THAT(why, HasSubstr("'no-such-if'"));
  EXPECT_THAT(why, HasSubstr("it has lo"));
  EXPECT_THAT(Why(CheckInterfaces("lo,")), HasSubstr("'lo,' has an empty"));
  EXPECT_THAT(Why(CheckInterfaces("../lo")), HasSubstr("'../lo'"));
}

TEST(FlagChecksTest, AHostHasNoPort) {
  EXPECT_TRUE(CheckHost("node-0.nodes").ok());
  EXPECT_TRUE(CheckHost("fe80::1%eth0").ok());
  EXPECT_THAT(Why(CheckHost("node-0:7401")), HasSubstr("has a port"));
  EXPECT_THAT(Why(CheckHost("a b")), HasSubstr("'a b'"));
  EXPECT_THAT(Why(CheckHost("http://x")), HasSubstr("'http://x'"));
}

}  // namespace
}  // namespace farkv
