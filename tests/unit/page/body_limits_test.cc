#include <limits>

#include "common/base/endian.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/page/body_decoders.h"

namespace farkv {
namespace {

using testing::GoldenBytes;
using ::testing::HasSubstr;
using testing::Pattern;

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// The golden body with a word replaced.
std::vector<std::byte> With(const char* golden, size_t offset, uint32_t word) {
  std::vector<std::byte> body = GoldenBytes(golden);
  StoreLe(body.data() + offset, word);
  return body;
}

TEST(BodyLimitsTest, FieldsOutOfRangeAreNamed) {
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 0, 4097)).status()),
      HasSubstr("items is 4097, at most 4096"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 4, 257)).status()),
      HasSubstr("num_kv_heads is 257, must lie in [1, 256]"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 8, 24)).status()),
      HasSubstr("head_dim is 24, must be a multiple of 16"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 12, 3)).status()),
      HasSubstr("dtype is 3"));
  EXPECT_THAT(
      MessageOf(DecodeStoreRequest(With("store_request", 12, 0x102)).status()),
      HasSubstr("dtype is 258, at most 255"));
  EXPECT_THAT(
      MessageOf(
          DecodeStoreRequest(With("store_request", 20, 0x80000000u)).status()),
      HasSubstr("page index is 2147483648, at most 2147483647"));
  EXPECT_THAT(MessageOf(DecodeStoreReply(With("store_reply", 8, 17)).status()),
              HasSubstr("status code is 17, at most 16"));
  EXPECT_THAT(MessageOf(DecodeStoreReply(With("store_reply", 4, 1)).status()),
              HasSubstr("reserved field is 1, must be zero"));
  EXPECT_THAT(
      MessageOf(DecodeFetchRequest(With("fetch_request", 12, 1)).status()),
      HasSubstr("reserved field of an item is 1"));
  EXPECT_THAT(
      MessageOf(DecodeFetchRequest(With("fetch_request", 4, 0)).status()),
      HasSubstr("num_kv_heads is 0"));
}

TEST(BodyLimitsTest, AttendFieldsOutOfRangeAreNamed) {
  const auto request = [](size_t offset, uint32_t word) {
    return MessageOf(
        DecodeAttendRequest(With("attend_request", offset, word)).status());
  };
  const auto reply = [](size_t offset, uint32_t word) {
    return MessageOf(
        DecodeAttendReply(With("attend_reply", offset, word)).status());
  };

  EXPECT_THAT(request(4, 3), HasSubstr("query heads is 3, must be a multiple "
                                       "of 2 and in [1, 1024]"));
  EXPECT_THAT(request(4, 1026), HasSubstr("query heads is 1026"));
  EXPECT_THAT(request(16, 0x7f800000), HasSubstr("scale is inf"));
  EXPECT_THAT(request(44, 0x80000000), HasSubstr("position is "));
  EXPECT_THAT(request(48, 65537), HasSubstr("pages of a sequence is 65537"));
  EXPECT_THAT(request(52, 2), HasSubstr("flags is 2, at most 1"));
  EXPECT_THAT(reply(12, 1), HasSubstr("reserved field is 1"));
  EXPECT_THAT(reply(16, 14), HasSubstr("subtrees is 2, at most 0"));
  EXPECT_THAT(reply(32, 32), HasSubstr("level of a subtree is 32, at most 31"));
  EXPECT_THAT(reply(36, 0x8000000),
              HasSubstr("page behind a subtree is 2147483664, at most "
                        "2147483648"));
}

TEST(BodyLimitsTest, RowsOfAFailedItemAreRefusedBothWays) {
  std::vector<FetchReplyItem> items = testing::GoldenFetchReply();
  items[0].code = absl::StatusCode::kDataLoss;

  EXPECT_THAT(MessageOf(EncodeFetchReply(items, 2).status()),
              HasSubstr("rows of a failed item is 3, must be 0"));
  EXPECT_THAT(
      MessageOf(DecodeFetchReply(With("fetch_reply", 12, 15), 64).status()),
      HasSubstr("rows of a failed item is 3, must be 0"));
}

TEST(BodyLimitsTest, AFetchReplyForAnotherRowSizeIsRefused) {
  const std::vector<std::byte> body = GoldenBytes("fetch_reply");

  EXPECT_THAT(MessageOf(DecodeFetchReply(body, 128).status()),
              HasSubstr("rows needs 3 x 128 bytes"));
  EXPECT_THAT(MessageOf(DecodeFetchReply(body, 32).status()),
              HasSubstr("96 bytes left over"));
}

TEST(BodyLimitsTest, EncodersRefuseWhatDecodersWould) {
  StoreRequest bitmaps = testing::GoldenStoreRequest();
  bitmaps.items[0].live.pop_back();
  StoreRequest crcs = testing::GoldenStoreRequest();
  crcs.items[1].row_crcs.push_back(1);
  StoreRequest negative = testing::GoldenStoreRequest();
  negative.items[0].layer = -1;
  AttendRequest queries = testing::GoldenAttendRequest();
  queries.sequences[0].queries.pop_back();
  AttendRequest previous = testing::GoldenAttendRequest();
  previous.sequences[1].previous.m.pop_back();
  std::vector<AttendSequenceReply> out = testing::GoldenAttendReply();
  out[0].subtrees[0].out.pop_back();

  EXPECT_THAT(MessageOf(EncodeStoreRequest(bitmaps).status()),
              HasSubstr("bitmaps is 1, must be 2"));
  EXPECT_THAT(MessageOf(EncodeStoreRequest(crcs).status()),
              HasSubstr("row CRCs is 3, must be 2"));
  EXPECT_THAT(MessageOf(EncodeStoreRequest(negative).status()),
              HasSubstr("layer is -1"));
  EXPECT_THAT(MessageOf(EncodeAttendRequest(queries).status()),
              HasSubstr("query bytes is 127, must be 128"));
  EXPECT_THAT(MessageOf(EncodeAttendRequest(previous).status()),
              HasSubstr("previous m is 3, must be 4"));
  EXPECT_THAT(MessageOf(EncodeAttendReply(out, 2, 16).status()),
              HasSubstr("out is 31, must be 32"));
  EXPECT_THAT(
      MessageOf(EncodeFetchRequest(testing::GoldenFetchRequest(), -2).status()),
      HasSubstr("KV heads is -2"));
}

TEST(BodyLimitsTest, TooManyItemsOrBytesAreRefused) {
  const std::vector<FetchItem> items(4097, {1, Generation{1}, {0}});
  StoreRequest large = testing::GoldenStoreRequest();
  large.geometry.num_kv_heads = 1;
  large.geometry.head_dim = 512;
  large.geometry.dtype = DType::kF32;
  // 257 full pages of 64 rows of 4 KiB.
  const std::vector<uint32_t> crcs(64, 0);
  large.items.assign(257, {0, 0, Generation{1}, {~uint64_t{0}}, crcs});

  EXPECT_THAT(MessageOf(EncodeFetchRequest(items, 1).status()),
              HasSubstr("items is 4097, at most 4096"));
  EXPECT_THAT(MessageOf(EncodeStoreRequest(large).status()),
              HasSubstr("body bytes is "));
  large.items.resize(255);
  EXPECT_TRUE(EncodeStoreRequest(large).ok());
}

}  // namespace
}  // namespace farkv
