#include "common/base/session_handle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farkv {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHex[] = "00112233445566778899aabbccddeeff";

SessionId Id() { return SessionId::FromHex(kHex).value(); }

TEST(SessionHandleTest, AHandleShowsFourBytesAndNoMore) {
  EXPECT_EQ(SessionHandle(Id()), "00112233");
  EXPECT_EQ(SessionHandleBytes(Id()), std::string("\x00\x11\x22\x33", 4));
}

TEST(SessionHandleTest, AHandleAndAWholeIdNameTheSession) {
  SessionId neighbour = Id();
  neighbour.bytes[15] ^= 1;
  SessionId stranger = Id();
  stranger.bytes[3] ^= 1;

  const auto handle = SessionPattern::FromHex("00112233").value();
  const auto whole = SessionPattern::FromHex(kHex).value();
  const auto bytes = SessionPattern::FromBytes(Id().ToBytes()).value();

  EXPECT_TRUE(handle.Matches(Id()));
  EXPECT_TRUE(handle.Matches(neighbour));
  EXPECT_FALSE(handle.Matches(stranger));
  EXPECT_TRUE(whole.Matches(Id()));
  EXPECT_FALSE(whole.Matches(neighbour));
  EXPECT_TRUE(bytes.Matches(Id()));
}

TEST(SessionHandleTest, APatternBoundsTheIdsThatItMatches) {
  const auto handle = SessionPattern::FromHex("00112233").value();

  EXPECT_EQ(handle.First().ToHex(), "00112233000000000000000000000000");
  EXPECT_EQ(handle.Last().ToHex(), "00112233ffffffffffffffffffffffff");
  const auto whole = SessionPattern::FromHex(kHex).value();
  EXPECT_EQ(whole.First(), whole.Last());
}

TEST(SessionHandleTest, OtherLengthsAndDigitsAreRefused) {
  for (const char* text :
       {"", "0011223", "001122334", "0011223G", "0011223A"}) {
    EXPECT_EQ(SessionPattern::FromHex(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_FALSE(SessionPattern::FromBytes("12345").ok());
}

TEST(SessionHandleTest, ARefusalDoesNotRepeatAnIdWithATypo) {
  const auto refused = SessionPattern::FromHex(std::string(kHex) + "0");

  EXPECT_THAT(std::string(refused.status().message()),
              testing::AllOf(HasSubstr("00112233"), HasSubstr("33 characters"),
                             Not(HasSubstr("44"))));
}

}  // namespace
}  // namespace farkv
