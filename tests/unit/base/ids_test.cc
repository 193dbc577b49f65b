#include "common/base/ids.h"

#include "absl/container/flat_hash_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using testing::HasSubstr;

constexpr char kHex[] = "000102030405060708090a0b0c0d0eff";

std::string Refusal(const absl::StatusOr<SessionId>& id) {
  EXPECT_EQ(id.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(id.status().message());
}

TEST(SessionIdTest, HexAndBytesNameTheSameId) {
  const SessionId id = SessionId::FromHex(kHex).value();

  EXPECT_EQ(id.ToHex(), kHex);
  EXPECT_EQ(id.ToBytes().size(), 16u);
  EXPECT_EQ(SessionId::FromBytes(id.ToBytes()).value(), id);
  EXPECT_EQ(id.bytes[15], 0xff);
}

TEST(SessionIdTest, MalformedHexIsRefusedNamingIt) {
  EXPECT_THAT(Refusal(SessionId::FromHex("abc")), HasSubstr("\"abc\""));
  const std::string upper = "000102030405060708090A0B0C0D0EFF";
  EXPECT_THAT(Refusal(SessionId::FromHex(upper)), HasSubstr(upper));
  const std::string letter = std::string(31, '0') + "g";
  EXPECT_THAT(Refusal(SessionId::FromHex(letter)), HasSubstr(letter));
}

TEST(SessionIdTest, AWrongNumberOfBytesIsRefusedNamingIt) {
  EXPECT_THAT(Refusal(SessionId::FromBytes("")), HasSubstr("got 0"));
  EXPECT_THAT(Refusal(SessionId::FromBytes(std::string(17, 'x'))),
              HasSubstr("got 17"));
}

TEST(SessionIdTest, TwoRandomIdsDiffer) {
  EXPECT_NE(SessionId::Random(), SessionId::Random());
}

TEST(SessionIdTest, IsAKeyOfAHashMap) {
  absl::flat_hash_map<SessionId, int> map;
  map[SessionId::FromHex(kHex).value()] = 1;
  map[SessionId{}] = 2;

  EXPECT_EQ(map.at(SessionId::FromHex(kHex).value()), 1);
}

TEST(StrongIdTest, ComparesByValue) {
  EXPECT_LT(Epoch{1}, Epoch{2});
  EXPECT_EQ(Generation{7}, Generation{7});
}

template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a == b;
};

TEST(StrongIdTest, TwoKindsCannotBeMixed) {
  EXPECT_TRUE((Comparable<Epoch, Epoch>));
  EXPECT_FALSE((Comparable<Epoch, Generation>));
  EXPECT_FALSE((Comparable<Epoch, uint64_t>));
}

}  // namespace
}  // namespace farkv
