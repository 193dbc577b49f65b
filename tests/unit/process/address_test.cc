#include "common/process/address.h"

#include <gtest/gtest.h>

namespace farkv {
namespace {

TEST(AddressTest, HostAndPortAreSplitAndJoinedAgain) {
  for (const std::string text :
       {"127.0.0.1:7401", "node-0.nodes:65535", "[::1]:0"}) {
    const absl::StatusOr<Address> address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(FormatAddress(*address), text);
  }
  EXPECT_EQ(ParseAddress("[::1]:80")->host, "::1");
}

TEST(AddressTest, WhatIsNotHostAndPortIsRefusedQuotingIt) {
  for (const std::string text :
       {"", "host", ":80", "host:", "host:70000", "host:-1", "::1:80",
        "http://host:80", "a b:80", "host:+80", "host: 80", "host:80 ",
        "a/b:80", "host:8o", "host:4294967376"}) {
    const absl::Status status = ParseAddress(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.ToString().find("'" + text + "'"), std::string::npos);
  }
}

TEST(AddressTest, NobodyConnectsToPort0) {
  EXPECT_TRUE(ParsePeerAddress("host:1").ok());
  EXPECT_EQ(ParsePeerAddress("host:0").status().message(),
            "'host:0' is not host:port: nothing listens on port 0");
  EXPECT_FALSE(ParsePeerAddress("host:99999").ok());
}

TEST(AddressTest, WhatCannotBeShownIsEscaped) {
  EXPECT_EQ(ParseAddress("a\nb").status().message(),
            "'a\\nb' is not host:port: no port");
}

}  // namespace
}  // namespace farkv
