#include "common/mapping/map_protocol.h"

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

MapRequest Request() {
  MapRequest request;
  for (size_t i = 0; i < 16; ++i) {
    request.session.bytes[i] = static_cast<uint8_t>(0x10 + i);
  }
  request.token = "tok";
  request.slab_id = 0x01020304;
  return request;
}

template <typename Bytes>
std::string Hex(const Bytes& bytes, size_t count) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), count));
}

TEST(MapProtocolTest, ARequestIsTheseBytesAndReadsBack) {
  const auto bytes = EncodeMapRequest(Request());
  ASSERT_TRUE(bytes.ok()) << bytes.status();

  EXPECT_EQ(Hex(*bytes, 40),
            "464b5653"
            "0100"
            "0300"
            "04030201"
            "00000000"
            "101112131415161718191a1b1c1d1e1f"
            "746f6b0000000000");
  const auto read = DecodeMapRequest(*bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->session, Request().session);
  EXPECT_EQ(read->token, "tok");
  EXPECT_EQ(read->slab_id, 0x01020304u);
}

TEST(MapProtocolTest, AReplyIsTheseBytesAndReadsBack) {
  MapReply reply;
  reply.status = absl::NotFoundError("no slab");
  reply.slab_id = 7;
  reply.size_bytes = 0x1122334455;
  const MapReplyBytes bytes = EncodeMapReply(reply);

  EXPECT_EQ(Hex(bytes, 32),
            "464b5653"
            "0100"
            "0700"
            "07000000"
            "05000000"
            "5544332211000000"
            "6e6f20736c616200");
  const auto read = DecodeMapReply(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status, absl::NotFoundError("no slab"));
  EXPECT_EQ(read->slab_id, 7u);
  EXPECT_EQ(read->size_bytes, 0x1122334455u);
}

TEST(MapProtocolTest, ALongErrorIsCutAndALongTokenRefused) {
  MapReply reply;
  reply.status = absl::InternalError(std::string(500, 'x'));
  MapRequest request = Request();
  request.token.assign(65, 't');

  const auto read = DecodeMapReply(EncodeMapReply(reply));
  const absl::Status refused = EncodeMapRequest(request).status();

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status.message().size(), kMaxMapMessageBytes);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("65 bytes, at most 64"));
}

TEST(MapProtocolTest, EveryTruncationIsRefused) {
  const auto request = EncodeMapRequest(Request());
  ASSERT_TRUE(request.ok());
  const MapReplyBytes reply = EncodeMapReply({});

  for (size_t count = 0; count < request->size(); ++count) {
    EXPECT_FALSE(DecodeMapRequest(std::span(*request).first(count)).ok());
  }
  for (size_t count = 0; count < reply.size(); ++count) {
    EXPECT_FALSE(DecodeMapReply(std::span(reply).first(count)).ok());
  }
}

TEST(MapProtocolTest, MagicVersionLengthAndCodeAreChecked) {
  const auto good = EncodeMapRequest(Request());
  ASSERT_TRUE(good.ok());
  MapRequestBytes magic = *good;
  magic[0] = std::byte{'X'};
  MapRequestBytes version = *good;
  version[4] = std::byte{2};
  MapRequestBytes length = *good;
  length[6] = std::byte{65};
  MapReplyBytes code = EncodeMapReply({});
  code[12] = std::byte{17};

  EXPECT_EQ(DecodeMapRequest(magic).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeMapRequest(version).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DecodeMapRequest(length).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeMapReply(code).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MapProtocolTest, ASocketPathMustFitItsAddress) {
  const std::string fits(107 - 10, 'd');
  EXPECT_TRUE(MapSocketPath(fits, "abcd").ok());

  const absl::Status status = MapSocketPath(fits + "d", "abcd").status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has 108 characters, must have 1 to 107"));
}

TEST(MapProtocolTest, ANodeIdMustBeAPlainFileName) {
  for (const char* id : {"", "a/b", "../a", ".hidden"}) {
    EXPECT_EQ(MapSocketPath("dir", id).status().code(),
              absl::StatusCode::kInvalidArgument)
        << id;
  }
  EXPECT_EQ(*MapSocketPath("dir", "node-1.a"), "dir/node-1.a.sock");
}

}  // namespace
}  // namespace farkv
