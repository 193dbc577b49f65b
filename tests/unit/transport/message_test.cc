#include "common/transport/message.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "common/base/endian.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farkv {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

MessageHeader SampleHeader() {
  MessageHeader header;
  header.type = MessageType::kFetchReply;
  header.request_id = 0x0102030405060708u;
  for (size_t i = 0; i < header.session.bytes.size(); ++i) {
    header.session.bytes[i] = static_cast<uint8_t>(0xa0 + i);
  }
  header.layer = 17;
  header.code = absl::StatusCode::kNotFound;
  header.step = 0x1122334455667788u;
  header.epoch = Epoch{9};
  header.body_bytes = 11;
  return header;
}

EncodedHeader Encode(const MessageHeader& header, const std::string& body) {
  const std::vector<std::byte> bytes = Bytes(body);
  const std::span<const std::byte> pieces[] = {bytes};
  return EncodeHeader(header, pieces);
}

TEST(MessageTest, TheHeaderHasItsFrozenBytes) {
  const EncodedHeader bytes = Encode(SampleHeader(), "hello pages");

  EXPECT_EQ(Hex(std::span(bytes).first(76)),
            "464b564d"
            "0100"
            "0800"
            "0807060504030201"
            "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
            "11000000"
            "05000000"
            "8877665544332211"
            "0900000000000000"
            "0b00000000000000"
            "000000000000000000000000");
  EXPECT_EQ(Hex(std::span(bytes).subspan(76)), "d07eea07");
}

// Frozen with the version: nodes and workers of different releases must mean
// the same by a number. A new type gets a new one.
TEST(MessageTest, EveryTypeHasItsFrozenNumber) {
  const std::pair<MessageType, int> types[] = {
      {MessageType::kHelloRequest, 1},   {MessageType::kHelloReply, 2},
      {MessageType::kPingRequest, 3},    {MessageType::kPingReply, 4},
      {MessageType::kStoreRequest, 5},   {MessageType::kStoreReply, 6},
      {MessageType::kFetchRequest, 7},   {MessageType::kFetchReply, 8},
      {MessageType::kAttendRequest, 9},  {MessageType::kAttendReply, 10},
      {MessageType::kScoresRequest, 11}, {MessageType::kScoresReply, 12}};
  for (const auto& [type, number] : types) {
    MessageHeader header = SampleHeader();
    header.type = type;

    const EncodedHeader bytes = Encode(header, "");

    EXPECT_EQ(LoadLe<uint16_t>(&bytes[6]), number);
    EXPECT_EQ(IsReply(type), number % 2 == 0) << number;
  }
}

TEST(MessageTest, AHeaderSurvivesTheRoundTrip) {
  const EncodedHeader bytes = Encode(SampleHeader(), "hello pages");

  const auto decoded = DecodeHeader(bytes);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, SampleHeader());
}

TEST(MessageTest, APieceBoundaryDoesNotChangeTheChecksum) {
  const auto first = Bytes("hello ");
  const auto second = Bytes("pages");
  const std::span<const std::byte> pieces[] = {first, {}, second};

  EXPECT_EQ(EncodeHeader(SampleHeader(), pieces),
            Encode(SampleHeader(), "hello pages"));
}

TEST(MessageTest, EveryFlippedBitIsNoticed) {
  auto body = Bytes("hello pages");
  EncodedHeader header = Encode(SampleHeader(), "hello pages");
  ASSERT_TRUE(CheckMessage(header, body).ok());

  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    header[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(CheckMessage(header, body).code(), absl::StatusCode::kDataLoss)
        << "header bit " << bit;
    header[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (size_t bit = 0; bit < body.size() * 8; ++bit) {
    body[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(CheckMessage(header, body).code(), absl::StatusCode::kDataLoss)
        << "body bit " << bit;
    body[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(MessageTest, ATruncatedBodyIsNoticedWithBothSizes) {
  const auto body = Bytes("hello page");

  const absl::Status status =
      CheckMessage(Encode(SampleHeader(), "hello pages"), body);

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("10"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("11"));
}

TEST(MessageTest, AnotherVersionIsAFailedPrecondition) {
  EncodedHeader bytes = Encode(SampleHeader(), "");
  StoreLe<uint16_t>(&bytes[4], 2);

  const absl::Status status = DecodeHeader(bytes).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version is 2"));
}

struct BadByte {
  size_t offset;
  uint8_t value;
  const char* field;
};

class MessageRejectTest : public ::testing::TestWithParam<BadByte> {};

TEST_P(MessageRejectTest, AFieldOutOfRangeIsNamed) {
  EncodedHeader bytes = Encode(SampleHeader(), "");
  bytes[GetParam().offset] = static_cast<std::byte>(GetParam().value);

  const absl::Status status = DecodeHeader(bytes).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().field));
}

INSTANTIATE_TEST_SUITE_P(Fields, MessageRejectTest,
                         ::testing::Values(BadByte{0, 'X', "magic"},
                                           BadByte{6, 0, "type"},
                                           BadByte{36, 17, "status code"},
                                           BadByte{39, 1, "status code"},
                                           BadByte{64, 1, "reserved byte"},
                                           BadByte{75, 1, "reserved byte"}));

TEST(MessageTest, ATypeOfALaterProgramIsDecodedAsItCame) {
  EncodedHeader bytes = Encode(SampleHeader(), "");
  for (const int number : {13, 14, 0x7fff, 0xfffe}) {
    const auto type = static_cast<uint16_t>(number);
    StoreLe<uint16_t>(&bytes[6], type);

    const auto decoded = DecodeHeader(bytes);

    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(static_cast<uint16_t>(decoded->type), type);
  }
  StoreLe<uint16_t>(&bytes[6], 0xffff);
  EXPECT_FALSE(DecodeHeader(bytes).ok());
}

TEST(MessageTest, OnlyTheMagicTellsWhetherItIsAMessage) {
  EncodedHeader bytes = Encode(SampleHeader(), "");
  EXPECT_TRUE(HasMagic(bytes));
  EXPECT_FALSE(HasMagic(std::span(bytes).first(3)));
  StoreLe<uint16_t>(&bytes[4], 9);
  EXPECT_TRUE(HasMagic(bytes));
  bytes[3] ^= std::byte{1};
  EXPECT_FALSE(HasMagic(bytes));
}

TEST(MessageTest, AHeaderOfAnotherLengthIsRefused) {
  const std::vector<std::byte> shorter(kMessageHeaderBytes - 1);
  const std::vector<std::byte> longer(kMessageHeaderBytes + 1);

  EXPECT_EQ(DecodeHeader(shorter).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeHeader(longer).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeHeader({}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace farkv
