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
       {"", "host", ":80", "host:", "host:70000", "host:-1", "::1:80"}) {
    const absl::Status status = ParseAddress(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.ToString().find("'" + text + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace farkv
